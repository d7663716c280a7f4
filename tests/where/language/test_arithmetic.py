import math
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from gateway.where.language import arithmetic
from gateway.where.language.conversions import Number
from tests.support.table import table

LOWEST, HIGHEST = -(2**63), 2**63 - 1
INTEGERS = st.integers(LOWEST, HIGHEST) | st.integers(-9, 9)
REALS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-9, 9).map(float)
NUMBERS = INTEGERS | REALS


def nearest(value: Fraction) -> float | None:
    """Round to binary64, which `Fraction` does exactly once."""
    try:
        return float(value)
    except OverflowError:
        return None


def expected(operator: str, left: Number, right: Number) -> Number | None:
    if operator in "/%" and right == 0:
        return None
    if isinstance(left, int) and isinstance(right, int) and operator != "/":
        a, b = Fraction(left), Fraction(right)
        exact = {"+": a + b, "-": a - b, "*": a * b}.get(operator)
        if exact is None:
            exact = a - b * math.trunc(a / b)
        return int(exact) if LOWEST <= exact <= HIGHEST else None
    a, b = Fraction(float(left)), Fraction(float(right))
    exact = {"+": a + b, "-": a - b, "*": a * b}.get(operator)
    if exact is None:
        exact = a / b if operator == "/" else a - b * math.trunc(a / b)
    return nearest(exact)


@given(st.sampled_from("+-*/%"), NUMBERS, NUMBERS)
def test_operations_are_exact_and_then_rounded_once(
    operator: str, left: Number, right: Number
) -> None:
    result = arithmetic.OPERATIONS[operator](left, right)
    wanted = expected(operator, left, right)
    assert (type(result), result) == (type(wanted), wanted)


@given(NUMBERS)
def test_rounding_is_exact(number: Number) -> None:
    exact = Fraction(number)
    half_up = math.floor(abs(exact) + Fraction(1, 2))
    wanted = {
        arithmetic.round_half_away: -half_up if exact < 0 else half_up,
        arithmetic.floor: math.floor(exact),
        arithmetic.ceiling: math.ceil(exact),
        arithmetic.truncate: math.trunc(exact),
    }
    for function, value in wanted.items():
        assert function(number) == (value if LOWEST <= value <= HIGHEST else None)


@table(
    ("number", "rounded"),
    [
        (0.49999999999999994, 0),
        (-0.49999999999999994, 0),
        (2.5, 3),
        (-2.5, -3),
        (2.0**51 + 0.5, 2**51 + 1),
        (2.0**53 + 1, 2**53),
        (2.0**63, None),
        (-(2.0**63), LOWEST),
        (1e300, None),
    ],
)
def test_round_half_away(number: Number, rounded: int | None) -> None:
    assert arithmetic.round_half_away(number) == rounded


@given(NUMBERS)
def test_negation_and_absolute_value(number: Number) -> None:
    fits = number != LOWEST or isinstance(number, float)
    assert arithmetic.negate(number) == (-number if fits else None)
    assert arithmetic.absolute(number) == (abs(number) if fits else None)

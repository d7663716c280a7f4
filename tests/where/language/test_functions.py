import math
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from gateway.mqtt.message import STRING_CODE_POINTS, Message
from gateway.where.compile import compile_where
from gateway.where.language import functions as arithmetic
from gateway.where.language.conversions import Number, Value
from gateway.where.language.functions import CASTS, FUNCTIONS, TYPE_NAMES, unchanged
from tests.support.table import table

MESSAGE = Message(
    "t",
    b'{"i":5,"r":-2.5,"b":true,"o":{"x":1},"n":null,"l":-9223372036854775808}',
    user_properties=(("w", "abc"), ("s", " a\tb "), ("d", "2"), ("u", "Straße")),
)


@table(
    "text",
    [
        "UPPER(u) = 'STRAßE' AND LOWER('ÀBC') = 'Àbc' AND UPPER(w) = 'ABC' AND LOWER('AB') = 'ab'",
        "UPPER(payload.b) = 'TRUE' AND UPPER(payload.r) IS NULL AND UPPER(payload.o) IS NULL",
        "TRIM(s) = 'a\tb' AND LENGTH(s) = 5 AND LENGTH('温度计😀') = 4",
        "SUBSTR(w, 2) = 'bc' AND SUBSTR(w, d, 1) = 'b' AND SUBSTR(w, TRUE, 2) = 'ab'",
        "SUBSTR(w, -2) = 'bc' AND SUBSTR(w, -5, 3) = 'a' AND SUBSTR(w, -5, 1) = ''",
        "SUBSTR(w, -9) = w AND SUBSTR(w, 9) = '' AND SUBSTR(w, 1, 9223372036854775807) = w",
        "SUBSTR(w, 0) IS NULL AND SUBSTR(w, 1.0) IS NULL AND SUBSTR(w, '2.0') IS NULL",
        "SUBSTR(w, 1, -1) IS NULL AND SUBSTR(w, 1, 1.5) IS NULL AND SUBSTR(w, 1, NULL) IS NULL",
        "INSTR(w, 'c') = 3 AND INSTR(w, 'x') = 0 AND INSTR(w, '') = 1 AND INSTR('', '') = 1",
        "CONCAT(w, payload.i, payload.b) = 'abc5true' AND CONCAT(w, payload.n) IS NULL",
        "ABS(payload.r) = 2.5 AND ABS(payload.l) IS NULL AND ABS('-4') = 4 AND ABS(w) IS NULL",
        "ROUND(payload.r) = -3 AND FLOOR(payload.r) = -3 AND CEIL(payload.r) = -2",
        "ROUND(9.3e18) IS NULL AND FLOOR(1e19) IS NULL AND CEIL(w) IS NULL",
        "COALESCE(payload.n, nope, w) = 'abc' AND COALESCE(payload.n, nope) IS NULL",
        "COALESCE(payload.o, 1) IS NOT NULL AND (COALESCE(payload.o, 1) = 1) IS NULL",
        "NULLIF(payload.i, '5') IS NULL AND NULLIF(payload.i, 6) = 5 AND NULLIF(w, 5) = w",
        "NULLIF(payload.i, nope) = 5 AND NULLIF(payload.o, payload.o) IS NOT NULL",
        "CAST(payload.r AS INTEGER) = -2 AND CAST('1e2' AS BIGINT) = 100",
        "CAST(w AS INT) IS NULL AND CAST(w AS TEXT) = w",
        "CAST(1e19 AS INTEGER) IS NULL AND LENGTH(CAST(payload.i AS REAL)) IS NULL",
        "CAST(w AS REAL) IS NULL AND CAST(d AS DOUBLE) / 4 = .5 AND CAST('TRUE' AS BOOL)",
    ],
)
def test_functions(text: str) -> None:
    assert compile_where(text).evaluate(MESSAGE) is True


def test_concatenation_stops_at_the_longest_string() -> None:
    half = "x" * (STRING_CODE_POINTS // 2)
    concatenate = FUNCTIONS["CONCAT"].compute
    assert concatenate(half, half, "x") == half + half + "x"
    assert concatenate(half, half, "xx") is None


def by_its_definition(text: str, start: int, length: int | None) -> str | None:
    if start == 0 or (length is not None and length < 0):
        return None
    begin = start - 1 if start > 0 else len(text) + start
    end = len(text) if length is None else begin + length
    return "".join(c for i, c in enumerate(text) if max(begin, 0) <= i < max(end, 0))


@given(st.text(), st.integers(-12, 12), st.integers(-3, 12))
def test_substring(text: str, start: int, length: int) -> None:
    substring = FUNCTIONS["SUBSTR"].compute
    assert substring(text, start) == by_its_definition(text, start, None)
    assert substring(text, start, length) == by_its_definition(text, start, length)


def test_every_function_says_how_many_arguments_it_takes() -> None:
    arities = {name: function.arity for name, function in FUNCTIONS.items()}
    assert arities["UPPER"] == "1 argument"
    assert arities["NULLIF"] == "2 arguments"
    assert arities["SUBSTR"] == "2 or 3 arguments"
    assert arities["COALESCE"] == "1 or more arguments"
    takes = [count for count in range(5) if FUNCTIONS["SUBSTR"].accepts(count)]
    assert takes == [2, 3]


def test_every_type_name_has_a_cast() -> None:
    assert set(TYPE_NAMES.values()) == set(CASTS)


@table("value", [None, True, 1, 1.5, "x", {}, []])
def test_unchanged(value: Value) -> None:
    assert unchanged(value) is value


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

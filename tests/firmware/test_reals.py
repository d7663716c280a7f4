"""The node's numbers are those of a binary64 machine."""

import struct
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from node import reals

from gateway.where.language.conversions import read_number
from gateway.where.language.functions import absolute, subtract

FLOATS = st.floats(allow_nan=False, allow_infinity=False)
INTEGERS = st.integers(reals._INTEGER_LOWEST, reals._INTEGER_HIGHEST)
NUMBERS = FLOATS | INTEGERS | st.sampled_from([5e-324, 2.0**53, 2**53 + 1, 1.7976931348623157e308])
DIGITS = st.text("0123456789", max_size=25)


def real(number: float) -> "tuple[int, int]":
    found = reals.from_binary64(struct.pack("<d", number))
    assert found is not None
    return found


def of_node(number: float) -> "reals.Number":
    return real(number) if isinstance(number, float) else number


def value(number: "reals.Number | None") -> "Fraction | int | None":
    if isinstance(number, tuple):
        return number[0] * Fraction(2) ** number[1]
    return number


@given(FLOATS)
def test_binary64_is_taken_exactly(number: float) -> None:
    assert value(real(number)) == Fraction(number)


@pytest.mark.parametrize("number", [float("inf"), float("-inf"), float("nan")])
def test_what_is_no_number(number: float) -> None:
    assert reals.from_binary64(struct.pack("<d", number)) is None


@given(NUMBERS, NUMBERS)
def test_comparison_is_exact(left: float, right: float) -> None:
    assert reals.compare(of_node(left), of_node(right)) == (left > right) - (left < right)


@given(NUMBERS, NUMBERS)
def test_distance_is_rounded_as_the_gateway_rounds_it(left: float, right: float) -> None:
    difference = subtract(left, right)
    expected = None if difference is None else absolute(difference)
    found = reals.distance(of_node(left), of_node(right))
    assert value(found) == (None if expected is None else Fraction(expected))
    assert type(found) is {int: int, float: tuple, type(None): type(None)}[type(expected)]


@given(st.integers(-(2**31), 2**31), st.integers(-400, 400))
def test_decimals_are_rounded_once(mantissa: int, exponent: int) -> None:
    found = value(reals.from_decimal(mantissa, exponent))
    expected = float(f"{mantissa}e{exponent}")
    assert found == (None if expected in (float("inf"), float("-inf")) else Fraction(expected))


@given(
    st.sampled_from(["", "+", "-", " ", "--"]),
    DIGITS,
    st.just("") | DIGITS.map(".{}".format),
    st.sampled_from(["", "e5", "E-310", "e+400", "e", "e-", "e5x", "e99999999999", "x", "²"]),
)
def test_texts_are_the_same_numbers(sign: str, whole: str, fraction: str, exponent: str) -> None:
    text = sign + whole + fraction + exponent
    expected = read_number(text) if len(text) <= 64 else None
    found = reals.read_number(text)
    assert value(found) == (None if expected is None else Fraction(expected))
    assert isinstance(found, int) == isinstance(expected, int)


def test_a_long_text_is_not_read() -> None:
    assert reals.read_number("0" * 64) == 0
    assert reals.read_number("0" * 65) is None

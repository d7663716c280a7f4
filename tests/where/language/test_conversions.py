import json
import sys

from hypothesis import given
from hypothesis import strategies as st

from gateway.where.language.conversions import (
    MIRRORED,
    ORDERS,
    Value,
    compare,
    read_number,
    to_boolean,
    to_number,
    to_string,
)
from tests.support.table import table
from tests.support.where.walker import compared


def same(left: Value, right: Value) -> bool:
    return type(left) is type(right) and left == right


@table(
    ("value", "number"),
    [
        (True, 1),
        (False, 0),
        (7, 7),
        (2.5, 2.5),
        ("12", 12),
        ("-012", -12),
        ("+7", 7),
        ("-0", 0),
        ("5.", 5.0),
        (".5e1", 5.0),
        ("1E+2", 100.0),
        ("9223372036854775807", 2**63 - 1),
        ("9223372036854775808", 2.0**63),
        ("-9223372036854775808", -(2**63)),
        ("-9223372036854775809", -(2.0**63)),
        ("99999999999999999999", 1e20),
        ("0" * 63 + "7", 7),
        ("1e308", 1e308),
    ],
)
def test_to_number(value: Value, number: Value) -> None:
    assert same(to_number(value), number)


NO_NUMBERS: list[Value] = [
    *(None, {}, [1], "0" * 64 + "7", "1e309", "-1e999", "", "+", ".", "e5", "1e", "- 5"),
    *("--5", " 5", "5\n", "1_000", "0x10", "inf", "nan", "\u0663", "\uff15", "true"),
]


@table("value", NO_NUMBERS)
def test_what_is_no_number(value: Value) -> None:
    assert to_number(value) is None


@table(
    ("value", "truth"),
    [
        (None, None),
        (True, True),
        (False, False),
        (0, False),
        (-3, True),
        (0.0, False),
        (-0.0, False),
        (5e-324, True),
        ("true", True),
        ("TrUe", True),
        ("FALSE", False),
        ("fal\u017fe", None),
        ("1", None),
        ("yes", None),
        ("true ", None),
        ("", None),
        ({}, None),
        ([], None),
    ],
)
def test_to_boolean(value: Value, truth: bool | None) -> None:
    assert to_boolean(value) is truth


@table(
    ("value", "text"),
    [
        (None, None),
        (True, "true"),
        (False, "false"),
        (-7, "-7"),
        (-(2**63), "-9223372036854775808"),
        (5.0, None),
        ("x", "x"),
        ({"a": 1}, None),
        ([], None),
    ],
)
def test_to_string(value: Value, text: str | None) -> None:
    assert same(to_string(value), text)


@given(st.integers(-(2**70), 2**70))
def test_an_integer_that_does_not_fit_is_the_nearest_real(integer: int) -> None:
    fits = -(2**63) <= integer < 2**63
    assert same(to_number(str(integer)), integer if fits else float(integer))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_real_is_the_nearest_binary64(real: float) -> None:
    assert same(to_number(json.dumps(real)), real)


def test_any_number_of_digits_can_be_read() -> None:
    digits = sys.get_int_max_str_digits() + 1
    assert read_number("0" * digits + "5") == 5
    assert read_number("-" + "0" * digits) == 0
    assert read_number("9" * digits) is None


TEXTS = st.sampled_from(["", "a", "B", "true", "False", "0", "1", "1.0", "9007199254740993"])
NUMBERS = st.sampled_from([0, 1, -0.0, 1.0, 2**53 + 1, 2.0**53, 2**63 - 1, 2.0**63])
VALUES: st.SearchStrategy[Value] = st.one_of(
    st.none(), st.booleans(), TEXTS, st.text(), NUMBERS, st.just({}), st.just([1])
)


@given(st.sampled_from(sorted(ORDERS)), VALUES, VALUES)
def test_compare(operator: str, left: Value, right: Value) -> None:
    result = compare(ORDERS[operator], left, right)
    assert result is compared(operator, left, right)
    assert result is compare(ORDERS[MIRRORED[operator]], right, left)

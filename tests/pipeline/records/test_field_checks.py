import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.records import field_checks
from pipeline.records.field_checks import Check, FieldError, integer, matching
from tests.support.table import table

SMALL = integer(1, 9)
HEX = matching("[0-9a-f]{2}", "2 hex digits")

GOOD: list[tuple[Check, object, object]] = [
    (SMALL, 1, 1),
    (SMALL, 9, 9),
    (HEX, "0f", "0f"),
    (field_checks.text, "", ""),
    (field_checks.filled_text, "a", "a"),
    (field_checks.boolean, False, False),
    (field_checks.base64, "", b""),
    (field_checks.base64, "/+8=", b"\xff\xef"),
    (field_checks.properties, [], []),
    (
        field_checks.properties,
        [["a", "1"], ["a", ""]],
        [{"name": "a", "value": "1"}, {"name": "a", "value": ""}],
    ),
]
BAD: list[tuple[Check, object, str]] = [
    (SMALL, 0, "must be an integer from 1 to 9, not 0"),
    (SMALL, 10, "not 10"),
    (SMALL, 1.0, r"not 1\.0"),
    (SMALL, True, "not True"),
    (SMALL, "1", "not '1'"),
    (SMALL, 10**4000, "not 1000"),
    (HEX, "0F", "must be 2 hex digits, not '0F'"),
    (HEX, "0f\n", "2 hex digits"),
    (HEX, 15, "2 hex digits"),
    (field_checks.text, 5, "must be text, not 5"),
    (field_checks.filled_text, "", "at least one character, not ''"),
    (field_checks.filled_text, ["a"], "at least one character"),
    (field_checks.boolean, 1, "must be true or false, not 1"),
    (field_checks.base64, 5, "must be base64 text"),
    (field_checks.base64, "YQ", "is not base64"),
    (field_checks.base64, "YQ==\n", "is not base64"),
    (field_checks.base64, "Y_-=", "is not base64"),
    (field_checks.base64, "ä===", "is not base64"),
    (field_checks.base64, "0000=", "Excess padding"),
    (field_checks.base64, "0000====", "Excess padding"),
    (field_checks.properties, {"a": "1"}, "must be a list"),
    (field_checks.properties, [["a"]], "pairs of two texts"),
    (field_checks.properties, [["a", 1]], "pairs of two texts"),
    (field_checks.properties, ["ab"], "pairs of two texts"),
]


@table(("check", "value", "column"), GOOD)
def test_a_right_value_gives_the_column(check: Check, value: object, column: object) -> None:
    assert check(value) == column


@table(("check", "value", "words"), BAD, ids=range(len(BAD)))
def test_a_wrong_value_is_named(check: Check, value: object, words: str) -> None:
    with pytest.raises(FieldError, match=words):
        check(value)


def test_an_error_repeats_a_bounded_part_of_the_value() -> None:
    with pytest.raises(FieldError) as raised:
        SMALL("x" * 1_000_000)
    assert len(str(raised.value)) < 150


@given(st.binary())
def test_base64_comes_back(content: bytes) -> None:
    assert field_checks.base64(base64.b64encode(content).decode()) == content


@given(st.text(alphabet="ABab01+/=", max_size=12))
def test_base64_takes_only_whole_padded_groups(text: str) -> None:
    body = text.rstrip("=")
    whole = len(text) % 4 == 0 and "=" not in body and len(text) - len(body) <= 2
    try:
        field_checks.base64(text)
        taken = True
    except FieldError:
        taken = False
    assert taken == (whole and len(body) % 4 != 1)

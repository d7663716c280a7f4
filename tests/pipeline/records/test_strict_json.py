from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.records.strict_json import DIGITS_MAX, NotJsonError, parse
from tests.support.table import table

GOOD = [
    (b"{}", {}),
    (b' [1, 2.5, "a", true, null]\r', [1, 2.5, "a", True, None]),
    (b'{"a":1,"a":2}', {"a": 2}),
    ('"\N{GRINNING FACE}"'.encode(), "\N{GRINNING FACE}"),
    (b'"\\ud83d\\ude00"', "\N{GRINNING FACE}"),
    (b'"\\u0000"', "\0"),
    (b"9223372036854775808", 2**63),
    (b"1e999", float("inf")),
]
BAD = [
    (b"", "Expecting value"),
    (b"{", "Expecting property name"),
    (b'{"a":1}{', "Extra data at character 8"),
    (b"NaN", "NaN is not JSON"),
    (b"[-Infinity]", "-Infinity is not JSON"),
    (b'"\xff"', "not UTF-8 at byte 2"),
    (b"\xef\xbb\xbf{}", "Expecting value"),
    ('{"a":1}'.encode("utf-16"), "not UTF-8"),
    (b'{"a":"\x00"}', "Invalid control character"),
    (b'"a\tb"', "Invalid control character"),
    (b'{"a":["\\ud83d"]}', "surrogate"),
    (b'{"\\uDE00":1}', "surrogate"),
    (b"[" * 200_000, "nested too deeply"),
    (b"01", "Extra data"),
    (b"'a'", "Expecting value"),
]


@table(("text", "value"), GOOD)
def test_json_gives_its_value(text: bytes, value: object) -> None:
    assert parse(text) == value


@table(("text", "words"), BAD, ids=range(len(BAD)))
def test_anything_else_is_refused_with_the_place(text: bytes, words: str) -> None:
    with pytest.raises(NotJsonError, match=words):
        parse(text)


def test_an_integer_of_any_length_does_not_stop_the_rest() -> None:
    longest = "9" * DIGITS_MAX
    assert parse(f"[{longest}, {longest}9, 1]".encode()) == [int(longest), float("inf"), 1]


@given(st.binary())
def test_no_bytes_raise_anything_else(text: bytes) -> None:
    with suppress(NotJsonError):
        parse(text)

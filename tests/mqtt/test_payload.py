import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.mqtt.message import JSON_BYTES, NOT_JSON, decode_payload, parse_json
from tests.support.table import table

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


def typed(value: Any) -> Any:
    """Tell 1, 1.0 and True apart."""
    if isinstance(value, dict):
        return {key: typed(member) for key, member in value.items()}
    return [typed(v) for v in value] if isinstance(value, list) else (type(value), value)


def in_64_bits(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: in_64_bits(member) for key, member in value.items()}
    if isinstance(value, list):
        return [in_64_bits(member) for member in value]
    fits = type(value) is not int or -(2**63) <= value < 2**63
    return value if fits else float(value)


@pytest.mark.uncovered
@given(VALUES, st.booleans(), st.sampled_from([None, 1]))
def test_json_arrives_with_the_types_of_the_language(
    value: Any, ascii_only: bool, indent: int | None
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    assert typed(parse_json(text.encode())) == typed(in_64_bits(value))


@table(
    ("text", "value"),
    [
        ("5", 5),
        ("-0", 0),
        ("25.0", 25.0),
        ("1e3", 1000.0),
        ("1E-400", 0.0),
        ("999999999999999999", 10**18 - 1),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("9223372036854775808", 2.0**63),
        ("18446744073709551615", 2.0**64),
        ("1" + "0" * 308, 1e308),
        ('[{"a":9223372036854775808},"1",2]', [{"a": 2.0**63}, "1", 2]),
        ("[-9223372036854775809, 9223372036854775809]", [-(2.0**63), 2.0**63]),
        ('["9223372036854775808", 9223372036854775808]', ["9223372036854775808", 2.0**63]),
        ('["\\"", 9223372036854775808, "\\\\"]', ['"', 2.0**63, "\\"]),
        (
            '{"\\\\\\"9223372036854775808": 0.9223372036854775808}',
            {'\\"9223372036854775808': 0.9223372036854775808},
        ),
        ("[9223372036854775808.5, 9223372036854775808e1]", [2.0**63, 2.0**63 * 10]),
        ("1e-9223372036854775808", 0.0),
        ("[1E-9223372036854775808, 0e9223372036854775808, 0e+9223372036854775808]", [0.0] * 3),
        (
            "[-9223372036854775809E1, 1.9223372036854775808]",
            [-(2.0**63) * 10, 1 + 0.9223372036854776],
        ),
        (' \t\r\n{"a" : [ ] }\n', {"a": []}),
        ('{"a":1,"a":2}', {"a": 2}),
        ('"\\ud83d\\ude00"', "😀"),
        ('"\\uD83D\\uDE00\\n"', "😀\n"),
        ('"\\\\ud800"', "\\ud800"),
        ('"\\\\\\ud83d\\ude00"', "\\😀"),
    ],
)
def test_parse_json(text: str, value: Any) -> None:
    assert typed(parse_json(text.encode())) == typed(value)


NO_JSON = [
    *('"\\ude12\\u0041"', '"\\u0041\\ud800"', '"\\ud800\\ud800\\udc00"', '{"\\ud800":1}'),
    *('{"a":"\\ud800","a":1}', "", " ", "{} {}", '{"a":1}x', "{'a':1}", "[1,]", "NaN"),
    *("[Infinity]", "-Infinity", "01", ".5", "5.", "+5", "0x10", "1_000", "\u0663"),
    *("[1] // one", "[1e999]", "[-1e999]", "1" + "0" * 309, "9" * 5000, '"a\nb"', '"\\x41"'),
    *('"\\u12"', '"abc', "True", "\ufeff{}", "\u00a0{}"),
]


@table("text", NO_JSON)
def test_what_is_no_json(text: str) -> None:
    assert parse_json(text.encode()) is NOT_JSON


NOISE = '"[[[{\\"[\\\\"'


@table(
    ("text", "is_json"),
    [
        ("[" * 100 + "]" * 100, True),
        ("[" * 101 + "]" * 101, False),
        ("[" * 101 + "1" * 20 + "]" * 101, False),
        ('{"a":[' * 50 + "1" + "]}" * 50, True),
        ('{"a":[' * 50 + "{}" + "]}" * 50, False),
        ("[" + ",".join(["[{}]"] * 500) + "]", True),
        ("[" + ",".join([NOISE] * 500) + "]", True),
        ("[" * 100 + ",".join([NOISE] * 500) + "]" * 100, True),
        ("[" * 101 + ",".join([NOISE] * 500) + "]" * 101, False),
        ("[" * 200_000 + "]" * 200_000, False),
        ("[" * 99 + ",".join(["[]"] * 10_000) + "]" * 99, True),
        ("[" * 99 + ",".join(["[{}]"] * 10_000) + "]" * 99, False),
        ("[" * 100 + ",".join(["[]"] * 10_000) + "]" * 100, False),
        ("[" * 262_144, False),
        ('"' + "[{" * 100 + '"', True),
        (f'"{NOISE[1:-1] * 50}"', True),
    ],
)
def test_nesting(text: str, is_json: bool) -> None:
    assert (parse_json(text.encode()) is not NOT_JSON) is is_json


@table(
    ("payload", "text"),
    [
        (b"", ""),
        ("温度".encode(), "温度"),
        (b"\xef\xbb\xbf{}", "\ufeff{}"),
        (b"\x80", None),
        (b"\xc0\xaf", None),
        (b"\xed\xa0\x80", None),
        (b"\xf5\x80\x80\x80", None),
        (b"x" * JSON_BYTES, "x" * JSON_BYTES),
        (b"x" * (JSON_BYTES + 1), None),
    ],
)
def test_decode_payload(payload: bytes, text: str | None) -> None:
    assert decode_payload(payload) == text

"""The quick decoder beside the rules: it takes nothing that they refuse, and changes nothing."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.records.fast_record import read_fast
from pipeline.records.record import read_slowly
from tests.support.disk.landing_files import record

VALUES: list[bytes] = [
    b"null", b"true", b"0", b"-0", b"1", b"17.0", b"1e2", b"-1", b"01", b"1.", b".5", b"+1", b"NaN",
    b"Infinity", b"9007199254740991", b"9007199254740992", b"9223372036854775807",
    b"9223372036854775808", b"-9223372036854775808", b"-9223372036854775809", b"1" * 400,
    b'""', b'"a"', b'"barn\\n"', b'"barn\n"', b'"00a1b2c3d4"', b'"00a1b2c3d4\\n"',
    b'"YQ=="', b'"YQ"',
    b'"YQ==YQ=="', b'"YWJj===="', b'"\\u0059Q=="', b'"\\ud83d\\ude00"', b'"\\ud83d"', b'"\\uDE00"',
    '"ä"'.encode(), b'"\xff"', b'"\xed\xa0\x80"', b'"\\x"', b'"\t"', b'"\\u0000"', b"[]", b"[[]]",
    b'[["a"]]', b'[["a","b"]]', b'[["a","b","c"]]', b'[["a",1]]', b'[["a","b"],["a","b"]]', b"{}",
    b'[{"a":"b"}]', b"[" * 2000, b"'a'", b"",
]  # fmt: skip
PLAIN: dict[str, Any] = record(17, correlation_data="YQ==", message_expiry=5, payload_format=1)
NAMES = [*PLAIN, "clientid", "username", "payload_is_json", "unknown", "seq", "time", "payload"]
LINES = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(VALUES)), max_size=3)


def line_of(changes: list[tuple[str, bytes]], *, twice: bool, tail: bytes) -> bytes:
    parts = {name: json.dumps(value).encode() for name, value in PLAIN.items()}
    pairs = [(name, value) for name, value in parts.items() if twice or name not in dict(changes)]
    fields = b",".join(b'"%b":%b' % (name.encode(), value) for name, value in [*pairs, *changes])
    return b"{" + fields + b"}" + tail


@pytest.mark.uncovered
@given(LINES, st.booleans(), st.sampled_from([b"", b" ", b"x", b"{}", b"\x00", b"\xff"]))
def test_it_takes_nothing_that_the_rules_refuse(
    changes: list[tuple[str, bytes]], twice: bool, tail: bytes
) -> None:
    line = line_of(changes, twice=twice, tail=tail)
    quick = read_fast(line)
    if quick is not None:
        assert (quick, None) == read_slowly(line)


@given(st.binary(max_size=40), st.integers(0, 400), st.integers(0, 20))
def test_nor_does_it_of_damaged_lines(damage: bytes, place: int, length: int) -> None:
    line = line_of([], twice=True, tail=b"")
    line = line[:place] + damage + line[place + length :]
    quick = read_fast(line)
    if quick is not None:
        assert (quick, None) == read_slowly(line)


@pytest.mark.parametrize(
    "changes", [{}, {"properties": None}, {"topic": "sensors/ä/°"}, {"qos": None}]
)
def test_it_takes_what_gateways_write(changes: dict[str, Any]) -> None:
    line = json.dumps(record(**changes)).encode()
    assert read_fast(line) is not None
    assert (read_fast(line), None) == read_slowly(line)

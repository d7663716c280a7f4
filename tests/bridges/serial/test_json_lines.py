"""JSON lines: what becomes a reading, what is refused, and what was never one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.bridges.readings.reading import Reading, RefusedReadingError
from gateway.bridges.serial.json_lines import LINE_MAX, LineDecoder, NoReadingError, parse_line
from gateway.counters import Counters
from tests.support.clocks import NOW

READINGS = [
    (
        '{"node":"n2","quantity":"temperature","value":21.5,"unit":"°C","time":1000}',
        Reading("n2", "temperature", 21.5, "°C", 1000),
    ),
    ('{"quantity":"contact","value":true}', Reading("n1", "contact", True, None, NOW)),
    ('{"quantity":"count","value":0,"unit":null}', Reading("n1", "count", 0, None, NOW)),
    ('{"quantity":"q","value":"on","unit":""}', Reading("n1", "q", "on", None, NOW)),
    ('{"quantity":"q","value":1,"node":null,"time":null}', Reading("n1", "q", 1, None, NOW)),
    ('{"quantity":"q","value":1e3,"firmware":"7.2"}', Reading("n1", "q", 1000.0, None, NOW)),
]


@pytest.mark.parametrize(("line", "reading"), READINGS)
def test_lines_that_are_readings(line: str, reading: Reading) -> None:
    assert parse_line(line.encode(), "n1", NOW) == reading


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("{}", "quantity"),
        ('{"quantity":7,"value":1}', "quantity"),
        ('{"quantity":"","value":1}', "quantity"),
        ('{"quantity":"a/b","value":1}', "quantity"),
        ('{"quantity":"q"}', "value"),
        ('{"quantity":"q","value":null}', "value"),
        ('{"quantity":"q","value":[1]}', "value"),
        ('{"quantity":"q","value":NaN}', "value"),
        ('{"quantity":"q","value":1e999}', "value"),
        ('{"quantity":"q","value":1,"node":""}', "node"),
        ('{"quantity":"q","value":1,"node":5}', "node"),
        ('{"quantity":"q","value":1,"node":"\\ud800"}', "node"),
        ('{"quantity":"q","value":1,"unit":5}', "unit"),
        ('{"quantity":"q","value":1,"time":"now"}', "time"),
        ('{"quantity":"q","value":1,"time":1.5}', "time"),
        ('{"quantity":"q","value":1,"time":true}', "time"),
        ('{"quantity":"q","value":1,"time":-1}', "time"),
    ],
)
def test_lines_that_are_refused(line: str, key: str) -> None:
    with pytest.raises(RefusedReadingError, match=key):
        parse_line(line.encode(), "n1", NOW)


@pytest.mark.parametrize(
    "line",
    [
        b"rst:0x1 (POWERON_RESET)",
        b"[]",
        b"21.5",
        b'{"quantity":',
        b"\xff\xfe",
        b"[" * 1024,
        b"null",
    ],
)
def test_lines_that_are_no_readings(line: bytes) -> None:
    with pytest.raises(NoReadingError):
        parse_line(line, "n1", NOW)


@given(st.binary(max_size=LINE_MAX))
def test_no_line_raises_anything_else(line: bytes) -> None:
    try:
        parse_line(line, "n1", NOW)
    except (NoReadingError, RefusedReadingError):
        return


def test_lines_end_at_a_line_feed_with_or_without_carriage_return(counters: Counters) -> None:
    decoder = LineDecoder(counters)
    assert decoder.feed(b"one\r\n\r\n  \ntwo\nthr") == [b"one", b"two"]
    assert decoder.feed(b"ee\n") == [b"three"]


def test_a_line_that_is_too_long_is_given_up_and_counted(counters: Counters) -> None:
    decoder = LineDecoder(counters)
    assert decoder.feed(b"x" * LINE_MAX + b"\n") == [b"x" * LINE_MAX]
    assert decoder.feed(b"x" * (LINE_MAX + 1) + b"\nnext\n") == [b"next"]
    assert counters.count("tidegate/serial/garbage_bytes") == LINE_MAX + 1

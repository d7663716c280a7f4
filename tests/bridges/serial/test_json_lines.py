"""JSON lines: what becomes a reading, what is refused, and what was never one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.bridges.readings.reading import RefusedReadingError
from gateway.bridges.serial.json_lines import parse_json
from gateway.bridges.serial.line_decoder import LINE_MAX
from gateway.bridges.serial.sample import NoReadingError, Sample

SAMPLES = [
    (
        '{"node":"n2","quantity":"temperature","value":21.5,"unit":"°C","time":1763740000000}',
        Sample({}, "n2", 1_763_740_000_000, ("temperature", 21.5, "°C")),
    ),
    ('{"quantity":"contact","value":true}', Sample({}, reading=("contact", True, None))),
    ('{"quantity":"count","value":0,"unit":null}', Sample({}, reading=("count", 0, None))),
    ('{"quantity":"q","value":"on","unit":""}', Sample({}, reading=("q", "on", None))),
    (
        '{"quantity":"q","value":1,"node":null,"time":null}',
        Sample({}, reading=("q", 1, None)),
    ),
    ('{"quantity":"q","value":1e3,"firmware":"7.2"}', Sample({}, reading=("q", 1000.0, None))),
    (
        '{"quantity":"q","value":1,"time":1763740000.5}',  # seconds
        Sample({}, None, 1_763_740_000_500, ("q", 1, None)),
    ),
    ('{"temp":21.3,"hum":40}', Sample({"temp": 21.3, "hum": 40})),
    ('{"node":"a","temp":21.3}', Sample({"node": "a", "temp": 21.3}, "a")),
]


@pytest.mark.parametrize(("line", "sample"), SAMPLES)
def test_lines_with_readings(line: str, sample: Sample) -> None:
    assert parse_json(line.encode()) == sample


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("{}", "quantity"),
        ('{"quantity":7,"value":1}', "quantity"),
        ('{"quantity":"q"}', "value"),
        ('{"quantity":"q","value":null}', "value"),
        ('{"quantity":"q","value":[1]}', "value"),
        ('{"quantity":"q","value":1,"node":5}', "node"),
        ('{"quantity":"q","value":1,"unit":5}', "unit"),
        ('{"quantity":"q","value":1,"time":"now"}', "time"),
        ('{"quantity":"q","value":1,"time":NaN}', "time"),
        ('{"quantity":"q","value":1,"time":1e999}', "time"),
        ('{"quantity":"q","value":1,"time":true}', "time"),
        ('{"quantity":"q","value":1,"time":-1}', "time"),
    ],
)
def test_lines_that_are_refused(line: str, key: str) -> None:
    with pytest.raises(RefusedReadingError, match=key):
        parse_json(line.encode())


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
        parse_json(line)


@given(st.binary(max_size=LINE_MAX))
def test_no_line_raises_anything_else(line: bytes) -> None:
    try:
        parse_json(line)
    except (NoReadingError, RefusedReadingError):
        return

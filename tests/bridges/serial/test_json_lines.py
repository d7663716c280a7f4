"""JSON lines: what becomes a reading, what is refused, and what was never one."""

import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.bridges.readings.event_time import UNREADABLE
from gateway.bridges.readings.reading import RefusedReadingError
from gateway.bridges.readings.written import json_of
from gateway.bridges.serial.json_lines import parse_json
from gateway.bridges.serial.sample import NoReadingError, Sample
from gateway.bridges.serial.serial_frames import LINE_MAX
from tests.support.table import table

SAMPLES = [
    (
        '{"node":"n2","quantity":"temperature","value":21.5,"unit":"°C","time":1763740000000}',
        Sample({}, "n2", 1_763_740_000_000, ("temperature", 21.5, "°C")),
    ),
    ('{"quantity":"contact","value":true}', Sample({}, reading=("contact", True, None))),
    ('{"quantity":"count","value":0,"unit":null}', Sample({}, reading=("count", 0, None))),
    ('{"quantity":"q","value":"on","unit":""}', Sample({}, reading=("q", "on", None))),
    ('{"quantity":"q","value":1,"node":null,"time":null}', Sample({}, reading=("q", 1, None))),
    (
        '{"quantity":"q","value":1e3,"firmware":"7.2"}',
        Sample({"firmware": "7.2"}, reading=("q", 1000.0, None)),
    ),
    (
        '{"quantity":"q","value":1,"time":1763740000.5}',  # seconds
        Sample({}, None, 1_763_740_000_500, ("q", 1, None)),
    ),
    ('{"temp":21.3,"hum":40}', Sample({"temp": 21.3, "hum": 40})),
    ('{"node":"a","temp":21.3}', Sample({"node": "a", "temp": 21.3}, "a")),
]


@table(("line", "sample"), SAMPLES)
def test_lines_with_readings(line: str, sample: Sample) -> None:
    assert parse_json(line.encode()) == sample


@table(
    ("line", "key"),
    [
        ("{}", "quantity"),
        ('{"quantity":', "no JSON"),
        ('{"temp":21,5}', "no JSON"),
        ('{"quantity":7,"value":1}', "quantity"),
        ('{"quantity":"q"}', "value"),
        ('{"quantity":"q","value":null}', "value"),
        ('{"quantity":"q","value":[1]}', "value"),
        ('{"quantity":"q","value":1,"node":5}', "node"),
        ('{"quantity":"q","value":1,"unit":5}', "unit"),
    ],
)
def test_lines_that_are_refused(line: str, key: str) -> None:
    with pytest.raises(RefusedReadingError, match=key):
        parse_json(line.encode())


@table(
    "said",
    [
        '"now"',
        "NaN",
        "nan",
        "1e999",
        "true",
        "-1",
        "[]",
        "{}",
        '"T"',
        '"1e400"',
        '"nan"',
        '"2025-11-21"',
    ],
)
def test_a_time_that_nobody_can_read_costs_no_value(said: str) -> None:
    sample = parse_json(f'{{"quantity":"q","value":1,"time":{said}}}'.encode())
    assert sample == Sample({}, None, UNREADABLE, ("q", 1, None))


TIMES = [
    ('"2025-11-21T15:46:40Z"', 1_763_740_000_000),
    ('"2025-11-21t15:46:40.25z"', 1_763_740_000_250),
    ('"2025-11-21 15:46:40"', 1_763_740_000_000),
    ('"20251121T174640+0200"', 1_763_740_000_000),
    ('"1763740000"', 1_763_740_000_000),
    ('"1763740000123"', 1_763_740_000_123),
    ('""', None),
]


@table(("said", "milliseconds"), TIMES)
@table("name", ["time", "timestamp", "ts", "Time"])
def test_times_in_iso_8601_and_as_text(name: str, said: str, milliseconds: int | None) -> None:
    assert parse_json(f'{{"a":1,"{name}":{said}}}'.encode()).time == milliseconds


@table("word", ["nan", "NaN", "NAN", "-nan", "inf", "-Infinity", "+inf", "ovf", "nan(ind)", "N.A."])
def test_what_is_no_number_costs_no_other_value(word: str) -> None:
    fields = parse_json(f'{{"a":{word},"b":48.5,"c":[{word}],"nan":"nan \\" inf"}}'.encode()).fields
    assert not math.isfinite(fields.pop("a"))  # type: ignore[arg-type]  # it is a number
    assert fields.pop("c")
    assert fields == {"b": 48.5, "nan": 'nan " inf'}


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        ("{'temp': 21.5, 'ok': True, 'it\\'s': None}", {"temp": 21.5, "ok": True, "it's": None}),
        ("{temp:21.5, hum : 48}", {"temp": 21.5, "hum": 48}),
        ('{"a":+5,"b":.5,"c":-.5,"d":21.,"e":007}', {"a": 5, "b": 0.5, "c": -0.5, "d": 21, "e": 7}),
        ('{"a":1,"b":[1,2,],}', {"a": 1, "b": [1, 2]}),
        ('{"a":1,"b": ,"c":}', {"a": 1, "b": None, "c": None}),
        ('[{"a":1},{"a":2}]', {"list": [{"a": 1}, {"a": 2}]}),
        ('{"a":nan,"b":"{x: +5,}"}', {"b": "{x: +5,}"}),
    ],
)
def test_what_boards_print_that_is_nearly_json(line: str, fields: dict[str, object]) -> None:
    said = parse_json(line.encode()).fields
    assert {name: value for name, value in said.items() if value == value} == fields


def test_words_of_other_languages_are_those_of_json() -> None:
    assert parse_json(b'{"a":True,"b":False,"c":None}').fields == {"a": True, "b": False, "c": None}


def test_latin_1_and_a_byte_order_mark() -> None:
    line = b'\xef\xbb\xbf{"node":"K\xc3\xbcche","quantity":"q","value":1,"unit":"\xc2\xb0C"}'
    assert parse_json(line) == Sample({}, "Küche", reading=("q", 1, "°C"))
    latin = line[3:].decode().encode("latin-1")
    assert parse_json(latin) == Sample({}, "Küche", reading=("q", 1, "°C"))


def test_no_line_takes_long_to_mend() -> None:
    started = time.process_time()
    for line in (
        b'{"a":nan' + b'\\"' * 30_000,
        b'{"\\' + b'"\\' * 30_000,
        b"{" + b"nan" * 20_000,
        b"nan",
    ):
        with pytest.raises(ValueError, match="line 1"):
            json_of(line)
    assert time.process_time() - started < 1


@table(
    "line", [b"rst:0x1 (POWERON_RESET)", b"[]", b"21.5", b"{x", b"\xff\xfe", b"[" * 1024, b"null"]
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

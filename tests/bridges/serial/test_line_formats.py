"""CSV and expressions: what a line says, and what is none."""

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.bridges.readings.reading import RefusedReadingError
from gateway.bridges.readings.reading_map import NO_MAP
from gateway.bridges.serial.csv_lines import CsvLines
from gateway.bridges.serial.json_lines import parse_json
from gateway.bridges.serial.regex_lines import compile_pattern
from gateway.bridges.serial.sample import NoReadingError, Parse, Sample
from gateway.bridges.serial.serial_frames import LINE_MAX
from gateway.bridges.serial.serial_settings import SerialSettings
from tests.support.table import table

TEMPERATURES = compile_pattern(r"T=(?P<temp>[-0-9.]+)(?: H=(?P<hum>\d+))? @(?P<node>\w+)")
COLUMNS = CsvLines(("time", "temp", "", "node"), ",").parse
GERMAN = CsvLines(("a", "b", "c"), ";", decimal=",").parse
TABS = CsvLines(("a", "b", "c"), "\t").parse
COMMAS = compile_pattern(r"(?P<temp>[-0-9,]+) (?P<unit>\S+) @(?P<time>\S+)", ",")


LINES: list[tuple[Parse, bytes, Sample | type[Exception]]] = [
    (COLUMNS, b"1763740000, 21.5 ,x,n1", Sample({"temp": 21.5}, "n1", 1_763_740_000_000)),
    (COLUMNS, b"1763740000123,-3,x,7", Sample({"temp": -3}, "7", 1_763_740_000_123)),
    (COLUMNS, b",21,,", Sample({"temp": 21})),
    (COLUMNS, b"1,2,3", RefusedReadingError),
    (COLUMNS, b"ready", NoReadingError),
    (COLUMNS, b"\xff1,2,3,4", NoReadingError),
    (COLUMNS, b"2025-11-21T15:46:40Z,21,,", Sample({"temp": 21}, time=1_763_740_000_000)),
    (COLUMNS, b"2025-11-21 16:46:40.5+01:00,21,,", Sample({"temp": 21}, time=1_763_740_000_500)),
    (COLUMNS, b"noon,21,,", Sample({"temp": 21}, time=0)),
    (COLUMNS, b"1,2,3,4,", Sample({"temp": 2}, "4", 1000)),
    (CsvLines(("a", "b"), ";").parse, b'1;"x;y"', Sample({"a": 1, "b": "x;y"})),
    (CsvLines(("a", "b"), ",").parse, b"1_0, 2", Sample({"a": "1_0", "b": 2})),
    (CsvLines(("a", "b"), ",").parse, b"1, \xb0C", Sample({"a": 1, "b": "°C"})),
    (
        CsvLines(("temp", "hum", "pm", "node"), ",").parse,
        b"21.5 \xb0C,48%,5 bananas,007",
        Sample(
            {"temp": 21.5, "hum": 48, "pm": "5 bananas"}, "007", units={"temp": "°C", "hum": "%"}
        ),
    ),
    (
        GERMAN,
        b"21,5 degC;1.234,5 V;3",
        Sample({"a": 21.5, "b": "1.234,5 V", "c": 3}, units={"a": "°C"}),
    ),
    (GERMAN, b"21,5 C;;3 A", Sample({"a": 21.5, "c": 3}, units={"a": "°C", "c": "A"})),
    (GERMAN, b"21,5;-,5;1.234,5", Sample({"a": 21.5, "b": -0.5, "c": "1.234,5"})),
    (GERMAN, b"21.5;1e3;+4", Sample({"a": 21.5, "b": 1000.0, "c": 4})),
    (TABS, b"\t2\t3", Sample({"b": 2, "c": 3})),
    (TABS, b"1\t\t3", Sample({"a": 1, "c": 3})),
    (TABS, b"1\t2\t", Sample({"a": 1, "b": 2})),
    (TABS, b"1\t2\t3\t", Sample({"a": 1, "b": 2, "c": 3})),
    (TABS, b"1\t2", RefusedReadingError),
    (CsvLines((), ",").parse, b"1,2", RefusedReadingError),
    (TEMPERATURES, b"xx T=-3.5 H=40 @n1", Sample({"temp": -3.5, "hum": 40}, "n1")),
    (TEMPERATURES, b"T=21 @n1", Sample({"temp": 21}, "n1")),
    (TEMPERATURES, b"T=21", NoReadingError),
    (TEMPERATURES, b"\xff", NoReadingError),
    (
        COMMAS,
        b"21,5 \xb0C @2025-11-21T15:46:40Z",
        Sample(
            {"temp": 21.5, "unit": "°C", "time": "2025-11-21T15:46:40Z"}, time=1_763_740_000_000
        ),
    ),
]


@table(("parse", "line", "expected"), LINES)
def test_lines(parse: Parse, line: bytes, expected: Sample | type[Exception]) -> None:
    if isinstance(expected, Sample):
        assert parse(line) == expected
    else:
        with pytest.raises(expected):
            parse(line)


def headed(*lines: bytes, separator: str = ",") -> list[str]:
    """Return the names that the last of some lines has its values for."""
    csv_lines = CsvLines((), separator, knows=NO_MAP.names)
    names: list[str] = []
    for line in lines:
        try:
            names = list(csv_lines.parse(line).fields)
        except NoReadingError:
            continue
        except RefusedReadingError:
            names = []
    return names


HEADERS: list[tuple[tuple[bytes, ...], list[str]]] = [
    ((b"temp,hum", b"1,2"), ["temp", "hum"]),
    ((b"temp,hum", b"1,2", b"pressure,voltage", b"1,2"), ["pressure", "voltage"]),
    ((b"temp,hum", b"1,2", b"x,y,z", b"1,2,3"), ["x", "y", "z"]),
    ((b"x,y", b"1,2"), ["x", "y"]),
    ((b"Temperature (\xc2\xb0C),Soil Moisture 1 [%]", b"1,2"), ["Temperature (\xb0C)"]),
    ((b"temp,,hum,", b"1,2,3"), ["temp", "hum"]),
    ((b"temp,hum,", b"1,2,"), ["temp", "hum"]),
    ((b"1,2",), []),
]
SAYINGS = [
    b"Failed to read from DHT sensor, retrying",
    b"Hello, world",
    b"Error, retrying",
    b",",
    b",,",
    b"Sensor error, humidity",
    b"rst:0x1 (POWERON_RESET),boot:0x13 (SPI_FAST_FLASH_BOOT)",
    b"configsip: 0, SPIWP:0xee",
    b"mode=DIO, clock=div1",
    b"WiFi connected, waiting.",
    b"Retrying in, 5 s",
    b"temp,temp",
    b"{temp},[hum]",
    b"-,-",
]


@table(("lines", "names"), HEADERS)
def test_a_header_names_the_columns_and_may_come_again(
    lines: tuple[bytes, ...], names: list[str]
) -> None:
    assert headed(*lines)[: len(names)] == names


@table("saying", SAYINGS)
def test_what_a_board_says_with_a_comma_is_no_header(saying: bytes) -> None:
    header, values = b"temp,hum", b"1,2"
    assert headed(header, values, saying, values) == ["temp", "hum"]
    assert headed(header, saying, values) == ["temp", "hum"]
    assert headed(saying, header, values) == ["temp", "hum"]
    assert headed(saying, values, header, values) == ["temp", "hum"]
    columns = CsvLines(("a", "b"), ",")
    with pytest.raises(NoReadingError):
        columns.parse(saying)
    assert columns.parse(values).fields == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [("(?P<a>", "missing"), (r"\d+", "1 to 64 named groups"), (r"(?P<a>x)\1", "invalid escape")],
)
def test_expressions_that_cannot_be_used(pattern: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        compile_pattern(pattern)


def test_no_expression_takes_long() -> None:
    catastrophic = compile_pattern(r"(?P<v>(a+)+)b(a|aa)*$")
    started = time.process_time()
    for _ in range(100):
        with pytest.raises(NoReadingError):
            catastrophic(b"a" * LINE_MAX)
    assert (
        time.process_time() - started < 1
    )  # one such line takes re longer than the universe lasts


@given(st.binary(max_size=200) | st.text(max_size=100).map(str.encode))
def test_no_line_raises_anything_else(line: bytes) -> None:
    for parse in (COLUMNS, CsvLines((), ",").parse, TEMPERATURES, parse_json):
        try:
            parse(line)
        except (NoReadingError, RefusedReadingError):
            continue


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"format": "csv", "decimal": ","}, "separator must not be decimal"),
        ({"format": "csv", "separator": "."}, "separator must not be decimal"),
        ({"format": "json", "decimal": ","}, "decimal can be given only"),
        ({"format": "csv", "columns": ("temp", "", "temperature")}, "both temperature"),
        ({"format": "csv", "columns": ("x", "x")}, "both x"),
    ],
)
def test_keys_that_contradict_each_other(settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        SerialSettings(port="/dev/x", **settings)
    SerialSettings(port="/dev/x", format="csv", decimal=",", separator=";")

"""CSV, NMEA 0183 and expressions: what a line says, and what is none."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.bridges.readings.reading import RefusedReadingError
from gateway.bridges.serial.csv_lines import CsvLines
from gateway.bridges.serial.json_lines import parse_json
from gateway.bridges.serial.line_decoder import LINE_MAX
from gateway.bridges.serial.nmea_lines import parse_nmea
from gateway.bridges.serial.regex_lines import compile_pattern
from gateway.bridges.serial.sample import NoReadingError, Parse, Sample

TEMPERATURES = compile_pattern(r"T=(?P<temp>[-0-9.]+)(?: H=(?P<hum>\d+))? @(?P<node>\w+)")
COLUMNS = CsvLines(("time", "temp", "", "node"), ",").parse

BERG = {"latitude": 48.1173, "longitude": 11.5166667}
GGA = b"$GPGGA,123519,4807.038,N,01131.000,E,1,08,0.9,545.4,M,46.9,M,,*47"
RMC = b"$GPRMC,123519,A,4807.038,S,01131.000,W,022.4,084.4,230394,003.1,W*65"


def nmea(body: str) -> bytes:
    check = 0
    for character in body.encode():
        check ^= character
    return f"${body}*{check:02x}".encode()


LINES: list[tuple[Parse, bytes, Sample | type[Exception]]] = [
    (COLUMNS, b"1763740000, 21.5 ,x,n1", Sample({"temp": 21.5}, "n1", 1_763_740_000_000)),
    (COLUMNS, b"1763740000123,-3,x,7", Sample({"temp": -3}, "7", 1_763_740_000_123)),
    (COLUMNS, b",21,,", Sample({"temp": 21})),
    (COLUMNS, b"1,2,3", RefusedReadingError),
    (COLUMNS, b"ready", NoReadingError),
    (COLUMNS, b"\xff1,2,3,4", NoReadingError),
    (CsvLines(("a", "b"), ";").parse, b'1;"x;y"', Sample({"a": 1, "b": "x;y"})),
    (CsvLines((), ",").parse, b"1,2", RefusedReadingError),
    (
        parse_nmea,
        GGA,
        Sample(
            {"latitude": 48.1173, "longitude": 11.5166667, "satellites": 8.0, "altitude": 545.4}
        ),
    ),
    (
        parse_nmea,
        RMC,
        Sample({"latitude": -48.1173, "longitude": -11.5166667, "speed": 11.5236, "course": 84.4}),
    ),
    (parse_nmea, GGA[:-1] + b"8", RefusedReadingError),
    (parse_nmea, GGA[:-3], RefusedReadingError),
    (parse_nmea, nmea("GPGGA,1,2"), RefusedReadingError),
    (parse_nmea, nmea("GPGGA,123519,,,,,0,00,,,M,,M,,"), Sample({})),
    (parse_nmea, nmea("GPRMC,123519,V,,,,,,,230394,,"), Sample({})),
    (parse_nmea, nmea("GPGSV,1,1,00"), Sample({})),
    (
        parse_nmea,
        nmea("WIMWV,214.8,R,7.2,K,A"),
        Sample({"wind_direction": 214.8, "wind_speed": 2.0}),
    ),
    (parse_nmea, nmea("WIMTW,17.9,C"), Sample({"temperature": 17.9})),
    (parse_nmea, nmea("SDDBT,8.1,f,2.4,M,1.3,F"), Sample({"distance": 2.4})),
    (
        parse_nmea,
        nmea("WIXDR,C,22.0,C,AIR,P,1.013,B,BARO,H,55,P,HUM"),
        Sample({"temperature": 22.0, "pressure": 1013.0, "humidity": 55.0}),
    ),
    (parse_nmea, b"u-blox AG", NoReadingError),
    (TEMPERATURES, b"xx T=-3.5 H=40 @n1", Sample({"temp": -3.5, "hum": 40}, "n1")),
    (TEMPERATURES, b"T=21 @n1", Sample({"temp": 21}, "n1")),
    (TEMPERATURES, b"T=21", NoReadingError),
    (TEMPERATURES, b"\xff", NoReadingError),
]


@pytest.mark.parametrize(("parse", "line", "expected"), LINES)
def test_lines(parse: Parse, line: bytes, expected: Sample | type[Exception]) -> None:
    if isinstance(expected, Sample):
        assert parse(line) == expected
    else:
        with pytest.raises(expected):
            parse(line)


def test_a_header_names_the_columns_and_may_come_again() -> None:
    lines = CsvLines((), ";")
    for header, name in ((b"t;h", "t"), (b"x;y", "x")):
        with pytest.raises(NoReadingError):
            lines.parse(header)
        assert lines.parse(b"1;2").fields[name] == 1


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
    for parse in (COLUMNS, CsvLines((), ",").parse, parse_nmea, TEMPERATURES, parse_json):
        for text in (line, nmea(line.decode("ascii", "replace").replace("\ufffd", "?"))):
            try:
                parse(text)
            except (NoReadingError, RefusedReadingError):
                continue


@given(
    st.lists(st.text("0123456789.,-NSEWAM", max_size=8), max_size=20),
    st.sampled_from(["GGA", "RMC", "GLL", "MWV", "XDR", "MTW", "DBT", "DPT", "HDT", "VTG"]),
)
def test_no_sentence_raises_anything_else(cells: list[str], kind: str) -> None:
    try:
        parse_nmea(nmea(",".join([f"GP{kind}", *cells])))
    except (NoReadingError, RefusedReadingError):
        return

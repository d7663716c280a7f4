"""NMEA 0183: what a sentence says, in which units, and what says nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.bridges.readings.reading import RefusedReadingError
from gateway.bridges.serial.nmea_lines import SENTENCES, parse_nmea
from gateway.bridges.serial.sample import NoReadingError
from gateway.bridges.serial.serial_bridge import LineIntake
from tests.support.clocks import NOW, ManualClock
from tests.support.nodes.bridges import Gateway
from tests.support.table import table

GGA = b"$GPGGA,123519,4807.038,N,01131.000,E,1,08,0.9,545.4,M,46.9,M,,*47"
RMC = b"$GPRMC,123519,A,4807.038,S,01131.000,W,022.4,084.4,230394,003.1,W*65"
POSITION: dict[str, object] = {"latitude": 48.1173, "longitude": 11.5166667}
PLACE = "4807.038,N,01131.000,E"


def nmea(body: str) -> bytes:
    return f"${body}*{check(body):02x}".encode()


def check(body: str) -> int:
    value = 0
    for character in body.encode():
        value ^= character
    return value


def tagged(tags: str, sentence: bytes) -> bytes:
    return f"\\{tags}*{check(tags):02X}\\".encode() + sentence


SENTENCES_READ: list[tuple[bytes, dict[str, object]]] = [
    (GGA, {**POSITION, "satellites": 8.0, "altitude": 545.4}),
    (nmea("GPGGA,123519,,,,,0,00,,,M,,M,,"), {}),
    (RMC, {"latitude": -48.1173, "longitude": -11.5166667, "speed": 11.5236, "course": 84.4}),
    (nmea("GPRMC,123519,V,,,,,,,230394,,"), {}),
    (nmea(f"GPRMC,123519,A,{PLACE},022.4,084.4,230394,003.1,W,N"), {}),
    (nmea(f"GPGLL,{PLACE}"), POSITION),
    (nmea(f"GPGLL,{PLACE},123519,A"), POSITION),
    (nmea(f"GPGLL,{PLACE},123519,A,A"), POSITION),
    (nmea(f"GPGLL,{PLACE},123519,V"), {}),
    (nmea(f"GPGLL,{PLACE},123519,V,N"), {}),
    (nmea(f"GPGLL,{PLACE},123519,,N"), {}),
    (nmea(f"GPGLL,{PLACE},123519,A,N"), {}),
    (
        nmea("GPVTG,054.7,T,034.4,M,005.5,N,010.2,K,A"),
        {"course": 54.7, "course_magnetic": 34.4, "speed": 2.8294},
    ),
    (nmea("GPVTG,,T,,M,,N,36.0,K"), {"speed": 10.0}),
    (nmea("GPVTG,054.7,T,034.4,M,005.5,N,010.2,K,N"), {}),
    (nmea("GPVTG,054.7"), {"course": 54.7}),
    (nmea("GPGSV,1,1,00"), {}),
    (
        nmea(f"GNGNS,122310.2,{PLACE},NAN,14,0.9,1005.5,6.5,,,S"),
        {**POSITION, "satellites": 14.0, "altitude": 1005.5},
    ),
    (nmea("GNGNS,122310.2,,,,,NN,00,,,,,,V"), {}),
    (
        nmea("WIMDA,29.75,I,1.0076,B,31.6,C,18.0,C,46.7,,18.5,C,270.0,T,268.0,M,12.4,N,6.4,M"),
        {
            "pressure": 1007.6,
            "temperature": 31.6,
            "temperature_water": 18.0,
            "humidity": 46.7,
            "temperature_dew_point": 18.5,
            "wind_speed": 6.4,
            "wind_direction": 270.0,
            "wind_direction_magnetic": 268.0,
        },
    ),
    (nmea("WIMDA,29.92,I,,,288.15,K"), {"pressure": 1013.2076, "temperature": 15.0}),
    (nmea("WIMMB,,,1.013,B"), {"pressure": 1013.0}),
    (nmea("WIMTA,21.5,C"), {"temperature": 21.5}),
    (nmea("WIMHU,48.5,,10.2,C"), {"humidity": 48.5, "temperature_dew_point": 10.2}),
    (nmea("IIXDR,T,1500,R,ENGINE#0"), {"ENGINE-0": 1500.0}),
    (nmea("WIMWV,214.8,R,7.2,K,A"), {"wind_angle_apparent": 214.8, "wind_speed_apparent": 2.0}),
    (nmea("WIMWV,214.8,T,10,N,A"), {"wind_angle_true": 214.8, "wind_speed_true": 5.1444}),
    (nmea("WIMWV,214.8,T,10,S,A"), {"wind_angle_true": 214.8, "wind_speed_true": 4.4704}),
    (nmea("WIMWV,214.8,R,7.2,K,V"), {}),
    (
        nmea("IIVWR,30,L,10.0,N,5.1,M,18.5,K"),
        {"wind_angle_apparent": 330.0, "wind_speed_apparent": 5.1444},
    ),
    (nmea("IIVWT,30,R,,N,5.1,M,,K"), {"wind_angle_true": 30.0, "wind_speed_true": 5.1}),
    (
        nmea("WIMWD,270.0,T,268.1,M,10.0,N,5.1,M"),
        {"wind_direction": 270.0, "wind_direction_magnetic": 268.1, "wind_speed": 5.1},
    ),
    (nmea("WIMWD,270.0,T,,M,10.0,N,,"), {"wind_direction": 270.0, "wind_speed": 5.1444}),
    (nmea("WIMTW,17.9,C"), {"temperature_water": 17.9}),
    (nmea("SDDBT,8.1,f,2.4,M,1.3,F"), {"distance": 2.4}),
    (nmea("SDDPT,2.4,0.5"), {"distance": 2.4}),
    (nmea("HCHDT,90.5,T"), {"heading": 90.5}),
    (nmea("HCHDM,90.5,M"), {"heading_magnetic": 90.5}),
    (nmea("HCHDG,1.5,2.0,W,3.1,E"), {"heading_magnetic": 359.5}),
    (nmea("HCHDG,90.5,,,3.1,E"), {"heading_magnetic": 90.5}),
    (nmea("HCHDG,,,,,"), {}),
    (
        nmea("VWVHW,90.0,T,88.0,M,10.0,N,18.5,K"),
        {"heading": 90.0, "heading_magnetic": 88.0, "speed_water": 5.1444},
    ),
    (
        nmea("WIXDR,C,22.0,C,AIR,P,1.013,B,BARO,H,55,P,HUM"),
        {"temperature": 22.0, "pressure": 1013.0, "humidity": 55.0},
    ),
    (nmea("WIXDR,C,293.15,K,TempAir"), {"temperature": 20.0}),
    (nmea("WIXDR,C,273.15,K,"), {"temperature": 0.0}),
    (nmea("WIXDR,C,68,F,Engine 1"), {"temperature_engine_1": 20.0}),
    (
        nmea("WIXDR,C,5,C,ENV_OUT,C,,C,x,C,6,C,ENV_IN"),
        {"temperature_env_out": 5.0, "temperature_env_in": 6.0},
    ),
    (nmea("WIXDR,C,5,C,,C,6,C,"), {"temperature": 5.0, "temperature_2": 6.0}),
    (nmea("WIXDR,P,101325,P,BARO"), {"pressure": 1013.25}),
    (nmea("WIXDR,U,12.6,V,HOUSE,A,3,D,ROLL"), {"voltage_house": 12.6, "rotation_roll": 3.0}),
    (nmea("WIXDR,V,40,L,FUEL,G,7,,"), {"volume_fuel": 0.04, "G": 7.0}),
    (nmea("WIXDR,V,55.5,P,FUEL#1"), {"level_fuel_1": 55.5}),
    (b" " + nmea("HCHDT,90.5,T") + b"\t", {"heading": 90.5}),
]


@table(("line", "fields"), SENTENCES_READ)
def test_sentences(line: bytes, fields: dict[str, object]) -> None:
    assert parse_nmea(line).fields == fields


REFUSED = [
    GGA[:-1] + b"8",
    GGA[:-3],
    nmea("GPGGA,1,2"),
    nmea("WIMWV,214.8,R,7.2,X,A"),
    nmea("WIMWV,214.8,X,7.2,K,A"),
    nmea("WIMTW,17.9,X"),
    tagged("c:1", GGA[:-1] + b"8"),
    tagged("s:r1,c:1763740000", GGA).replace(b"r1", b"r2"),
]


@table("line", REFUSED)
def test_sentences_that_are_refused(line: bytes) -> None:
    with pytest.raises(RefusedReadingError):
        parse_nmea(line)


@pytest.mark.parametrize("line", [b"u-blox AG", b"\\s:x\\$GPGLL", b"\\"])
def test_what_is_no_sentence(line: bytes) -> None:
    with pytest.raises(NoReadingError):
        parse_nmea(line)


def test_a_tag_block_says_the_time() -> None:
    sample = parse_nmea(tagged("g:1-2-1", tagged("s:r3,c:1763740000", GGA)))
    assert sample.time == 1_763_740_000_000
    assert sample.fields["altitude"] == 545.4
    assert parse_nmea(tagged("s:r3", GGA)).time is None
    assert parse_nmea(tagged("c:soon", GGA)).time == 0


def test_units_are_those_of_the_readings(
    clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    gateway = Gateway.make(clock)
    intake = LineIntake("boat", gateway.host("serial", "tty"), parse_nmea)
    for line in (
        tagged(f"c:{NOW - 5000}", GGA),
        nmea("WIXDR,C,293.15,K,SEA,A,3,D,ROLL"),
        nmea("WIMWV,1,T,1,M,A"),
    ):
        intake.feed(line + b"\r\n")
    units = {topic.rpartition("/")[2]: each.get("unit") for topic, each in gateway.broker.readings}
    assert units == {
        "latitude": "°",
        "longitude": "°",
        "satellites": None,
        "altitude": "m",
        "temperature_sea": "°C",
        "rotation_roll": "°",
        "wind_angle_true": "°",
        "wind_speed_true": "m/s",
    }
    assert gateway.broker.readings[0][1]["time"] == NOW - 5000
    assert not [record for record in caplog.records if record.levelname == "WARNING"]


@given(
    st.lists(st.text("0123456789.,-NSEWAMTRKCPB", max_size=8), max_size=20),
    st.sampled_from(sorted(SENTENCES)),
)
def test_no_sentence_raises_anything_else(cells: list[str], kind: str) -> None:
    try:
        parse_nmea(nmea(",".join([f"GP{kind}", *cells])))
    except (NoReadingError, RefusedReadingError):
        return


@given(st.binary(max_size=200))
def test_no_line_raises_anything_else(line: bytes) -> None:
    for text in (line, nmea(line.decode("ascii", "replace").replace("\ufffd", "?"))):
        try:
            parse_nmea(text)
        except (NoReadingError, RefusedReadingError):
            continue

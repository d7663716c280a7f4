"""Bodies of frames: each value type, each way to be malformed, and whom the answer is for."""

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.bridges.readings.reading import Value
from gateway.bridges.serial.frame_body import (
    FrameReading,
    MalformedFrameError,
    ReadingsFrame,
    Status,
    decode_frame,
    encode_acknowledgement,
)
from tests.support.table import table

TEMPERATURE = "01 01 02 ff d7000000"


def head(
    *, version: int = 1, kind: int = 1, flags: int = 0, boot: int = 7, sequence: int = 1
) -> bytes:
    return struct.pack("<BBBIIQII", version, kind, flags, boot, sequence, 1500, 20, 3)


def body(readings: str, count: int = 1, node: bytes = b"n1", **fields: int) -> bytes:
    return head(**fields) + bytes([len(node)]) + node + bytes([count]) + bytes.fromhex(readings)


def decoded(data: bytes) -> ReadingsFrame:
    frame = decode_frame(data)
    assert isinstance(frame, ReadingsFrame)
    return frame


def test_the_fields_of_a_frame() -> None:
    assert decoded(body(TEMPERATURE)) == ReadingsFrame(
        node="n1",
        boot=7,
        sequence=1,
        clock=1500,
        age=20,
        dropped=3,
        wall=None,
        readings=(FrameReading("temperature", 21.5, "°C"),),
        unknown=0,
    )


VALUES = [
    ("00", False),
    ("01", True),
    ("02 00 30000000", 48),
    ("02 02 30000000", 4800),
    ("02 fe 59080000", 21.37),
    ("02 f7 ffffff7f", 2.147483647),
    ("02 ff 00000080", -214748364.8),
    ("03 ffffffffffffffff", -1),
    ("03 ffffffffffffff7f", 2**63 - 1),
    ("04 0000000000803540", 21.5),
    ("05 00", ""),
    ("05 03 c2b041", "°A"),
]


@table(("encoded", "value"), VALUES)
def test_value_types(encoded: str, value: Value) -> None:
    found = decoded(body("01 00" + encoded)).readings[0].value
    assert (found, type(found)) == (value, type(value))


def test_infinities_are_left_to_the_check_of_the_reading() -> None:
    value = decoded(body("01 00 04 000000000000f07f")).readings[0].value
    assert value == math.inf


def test_names_that_are_not_in_the_tables() -> None:
    frame = decoded(body("ff 03 536f43 ff 04 6d696e73 01"))
    assert frame.readings == (FrameReading("SoC", True, "mins"),)


def test_numbers_without_a_meaning_are_counted_and_left_out() -> None:
    frame = decoded(body("00 01 01  c8 01 01  01 c8 02 00 01000000" + TEMPERATURE, count=4))
    assert [reading.quantity for reading in frame.readings] == ["temperature"]
    assert frame.unknown == 3


def test_wall_time_follows_the_head() -> None:
    plain = body(TEMPERATURE, flags=1)
    with_time = plain[:27] + (1_763_740_000_000).to_bytes(8, "little") + plain[27:]
    assert decoded(with_time).wall == 1_763_740_000_000


MALFORMED = [
    (body(TEMPERATURE, flags=4), "flags 0x04"),
    (body(TEMPERATURE, sequence=0), "sequence number 0"),
    (body("", count=0), "0 readings"),
    (body(TEMPERATURE + "00"), "1 readings in"),
    (body(TEMPERATURE, count=2), "within a field"),
    (body(TEMPERATURE, node=b""), "text of 0 bytes: 1 to 64"),
    (body(TEMPERATURE, node=b"x" * 65), "text of 65 bytes: 1 to 64"),
    (body(TEMPERATURE, node=b"\xff"), "not UTF-8"),
    (body("ff 00 00 01"), "text of 0 bytes: 1 to 64"),
    (body("01 ff 21" + "78" * 33 + "01"), "text of 33 bytes: 1 to 32"),
    (body("01 00 05 21" + "78" * 33), "text of 33 bytes: 0 to 32"),
    (body("01 00 06"), "value type 6"),
    (body("01 00 02 0a 01000000"), "exponent 10"),
    (body("01 00 02 f6 01000000"), "exponent -10"),
]


@table(("data", "reason"), MALFORMED)
def test_malformed_bodies_say_whom_to_answer(data: bytes, reason: str) -> None:
    with pytest.raises(MalformedFrameError, match=reason) as caught:
        decode_frame(data)
    assert caught.value.boot == 7
    assert caught.value.sequence in (0, 1)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x01", "ends at byte 1"),
        (head(version=2) + b"anything", "version 2: 1 is spoken here"),
        (head(kind=9), "frame type 9"),
        (head()[:-1], "ends at byte 26"),
    ],
)
def test_without_a_head_there_is_nobody_to_answer(data: bytes, reason: str) -> None:
    with pytest.raises(MalformedFrameError, match=reason) as caught:
        decode_frame(data)
    assert caught.value.boot is caught.value.sequence is None


def test_an_acknowledgement_that_comes_back_is_none() -> None:
    assert decode_frame(encode_acknowledgement(Status.STORED, 7, 1)) is None


@given(st.binary(max_size=240) | st.binary(max_size=200).map(lambda tail: head() + tail))
def test_no_body_raises_anything_else(data: bytes) -> None:
    try:
        decode_frame(data)
    except MalformedFrameError:
        return


def test_the_bytes_of_an_acknowledgement() -> None:
    assert encode_acknowledgement(Status.REFUSED, 0x0A1B2C3D, 258).hex(" ") == (
        "01 02 01 3d 2c 1b 0a 02 01 00 00"
    )

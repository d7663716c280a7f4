"""The data types of section 1.5, each read and written."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.mqtt.codec import fields
from gateway.mqtt.errors import MalformedPacket, ProtocolError
from tests.support.table import table

VARIABLE_BYTE_INTEGERS = [
    (0, b"\x00"),
    (1, b"\x01"),
    (127, b"\x7f"),
    (128, b"\x80\x01"),
    (16_383, b"\xff\x7f"),
    (16_384, b"\x80\x80\x01"),
    (2_097_151, b"\xff\xff\x7f"),
    (2_097_152, b"\x80\x80\x80\x01"),
    (268_435_455, b"\xff\xff\xff\x7f"),
]
"""The borders of table 1-1 of MQTT 5."""


@table(("value", "raw"), VARIABLE_BYTE_INTEGERS)
def test_a_variable_byte_integer(value: int, raw: bytes) -> None:
    assert fields.write_variable_byte_integer(value) == raw
    read = fields.read_variable_byte_integer(b"\xff" + raw + b"\xff", 1, len(raw) + 1, "n")
    assert read == (value, len(raw) + 1)


@given(st.integers(0, fields.VARIABLE_BYTE_INTEGER_LIMIT))
def test_any_variable_byte_integer(value: int) -> None:
    raw = fields.write_variable_byte_integer(value)
    assert fields.read_variable_byte_integer(raw, 0, len(raw), "n") == (value, len(raw))


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"", "n needs 1 bytes, 0 are left"),
        (b"\x80", "n needs 2 bytes, 1 are left"),
        (b"\xff\xff\xff", "n needs 4 bytes, 3 are left"),
        (b"\x80\x80\x80\x80\x01", "n is longer than 4 bytes"),
        (b"\x81\x00", "n 1 takes more bytes than it needs"),
        (b"\x80\x80\x80\x00", "n 0 takes more bytes than it needs"),
    ],
)
def test_a_malformed_variable_byte_integer(raw: bytes, text: str) -> None:
    with pytest.raises(MalformedPacket) as raised:
        fields.read_variable_byte_integer(raw, 0, len(raw), "n")
    assert raised.value.reason == text


@pytest.mark.parametrize("value", [-1, 268_435_456])
def test_what_is_no_variable_byte_integer(value: int) -> None:
    with pytest.raises(ValueError, match=f"{value}; at most 268435455"):
        fields.write_variable_byte_integer(value)


def test_fixed_integers_have_the_high_byte_first() -> None:
    assert fields.read_byte(b"\x00\xfe", 1, 2, "n") == (0xFE, 2)
    assert fields.read_two_byte_integer(b"\x01\x02", 0, 2, "n") == (0x0102, 2)
    assert fields.read_four_byte_integer(b"\x01\x02\x03\x04", 0, 4, "n") == (0x01020304, 4)
    assert fields.write_byte(0xFE) == b"\xfe"
    assert fields.write_two_byte_integer(0x0102) == b"\x01\x02"
    assert fields.write_four_byte_integer(0xFFFFFFFF) == b"\xff\xff\xff\xff"


@pytest.mark.parametrize(
    ("reader", "needed"),
    [
        (fields.read_byte, 1),
        (fields.read_two_byte_integer, 2),
        (fields.read_four_byte_integer, 4),
        (fields.read_binary, 2),
        (fields.read_string, 2),
    ],
)
def test_a_field_ends_with_its_packet(
    reader: Callable[[bytes, int, int, str], object], needed: int
) -> None:
    with pytest.raises(MalformedPacket) as raised:
        reader(b"\x00" * 8, 3, 2 + needed, "the field")
    assert raised.value.reason == (f"the field needs {needed} bytes, {needed - 1} are left")


def test_binary_data() -> None:
    longest = b"\xff" * 65_535
    assert fields.write_binary(b"") == b"\x00\x00"
    assert fields.write_binary(longest) == b"\xff\xff" + longest
    assert fields.read_binary(b"\xff\xff" + longest, 0, 65_537, "n") == (longest, 65_537)
    with pytest.raises(ValueError, match="65536 bytes in one field; at most 65535"):
        fields.write_binary(longest + b"x")


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0")))
def test_any_string(text: str) -> None:
    raw = fields.write_string(text)
    assert fields.read_string(raw, 0, len(raw), "n") == (text, len(raw))


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\xff", "n is not UTF-8: invalid start byte at byte 0"),
        (b"ab\xed\xa0\x80", "n is not UTF-8: invalid continuation byte at byte 2"),
        (b"ab\xe2\x82", "n is not UTF-8: unexpected end of data at byte 2"),
        (b"a\x00", "n holds U+0000"),
    ],
)
def test_a_malformed_string(data: bytes, text: str) -> None:
    with pytest.raises(MalformedPacket) as raised:
        fields.read_string(fields.write_binary(data), 0, len(data) + 2, "n")
    assert raised.value.reason == text


def test_a_string_pair() -> None:
    raw = b"\x00\x01k\x00\x02vw"
    assert fields.write_string_pair(("k", "vw")) == raw
    assert fields.read_string_pair(raw, 0, len(raw), "n") == (("k", "vw"), len(raw))


def test_a_packet_identifier_is_not_0() -> None:
    assert fields.read_packet_identifier(b"\x00\x01", 0, 2) == (1, 2)
    with pytest.raises(ProtocolError, match="packet identifier 0; it must be 1 to 65535"):
        fields.read_packet_identifier(b"\x00\x00", 0, 2)

"""A remaining length that a packet cannot have is known before its body has come."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.mqtt.codec.fields import VARIABLE_BYTE_INTEGER_LIMIT, write_variable_byte_integer
from gateway.mqtt.codec.packet_codec import decode, encode
from gateway.mqtt.codec.remaining_length import BOUNDS, check_remaining_length
from gateway.mqtt.connection import Connection
from gateway.mqtt.errors import MalformedPacket, MqttError
from gateway.mqtt.packets import MQTT_3_1_1, MQTT_5, Connect, Packet
from tests.mqtt.cases.case import PacketCase
from tests.mqtt.framed import body_of
from tests.mqtt.packet_cases import PACKET_CASES
from tests.mqtt.packet_strategies import packets_of_a_version
from tests.support.table import table

ILLEGAL = {
    (0, 0x10, 6): "CONNECT with a remaining length of 6; at least 7",
    (3, 0x40, 1): "PUBACK with a remaining length of 1; at least 2",
    (4, 0x40, 3): "PUBACK with a remaining length of 3; at most 2",
    (4, 0x50, 4): "PUBREC with a remaining length of 4; at most 2",
    (4, 0x62, 0x200): "PUBREL with a remaining length of 512; at most 2",
    (4, 0x70, 1): "PUBCOMP with a remaining length of 1; at least 2",
    (4, 0x30, 2): "PUBLISH with a remaining length of 2; at least 3",
    (4, 0x34, 4): "PUBLISH with a remaining length of 4; at least 5",
    (4, 0x82, 5): "SUBSCRIBE with a remaining length of 5; at least 6",
    (4, 0xA2, 4): "UNSUBSCRIBE with a remaining length of 4; at least 5",
    (4, 0xC0, 1): "PINGREQ with a remaining length of 1; at most 0",
    (4, 0xE0, 1): "DISCONNECT with a remaining length of 1; at most 0",
    (5, 0x10, 1): "CONNECT with a remaining length of 1; at least 7",
    (5, 0x40, 1): "PUBACK with a remaining length of 1; at least 2",
    (5, 0x31, 1): "PUBLISH with a remaining length of 1; at least 3",
    (5, 0x3A, 4): "PUBLISH with a remaining length of 4; at least 5",
    (5, 0x82, 2): "SUBSCRIBE with a remaining length of 2; at least 3",
    (5, 0xA2, 2): "UNSUBSCRIBE with a remaining length of 2; at least 3",
    (5, 0xC0, 300): "PINGREQ with a remaining length of 300; at most 0",
}
"""The protocol version, the first byte and the remaining length, and the error's text."""


def opened(version: int) -> Connection:
    """Return a connection whose client has sent its CONNECT, none yet for version 0."""
    connection = Connection(1 << 20)
    if version:
        connection.framer.feed(encode(Connect("c", version), version))
        connection.next_packet()
    return connection


def error_of(connection: Connection, *pieces: bytes) -> tuple[type[MqttError], str]:
    """Return the type and the text of the error that the last piece brings."""
    *before, last = pieces
    for piece in before:
        connection.framer.feed(piece)
        assert connection.next_packet() is None
    connection.framer.feed(last)
    with pytest.raises(MqttError) as raised:
        connection.next_packet()
    return type(raised.value), raised.value.reason


@table(("version", "first_byte", "length"), ILLEGAL)
def test_it_is_refused_when_the_fixed_header_is_there(
    version: int, first_byte: int, length: int
) -> None:
    header = bytes([first_byte]) + write_variable_byte_integer(length)
    expected = MalformedPacket, ILLEGAL[version, first_byte, length]
    assert error_of(opened(version), header) == expected
    assert error_of(opened(version), header[:1], header[1:]) == expected
    assert error_of(opened(version), header + bytes(length)) == expected


def test_others_are_waited_for() -> None:
    for version, header in (
        (MQTT_3_1_1, b"\x82\x06"),
        (MQTT_5, b"\xe0\x01"),
        (MQTT_5, b"\xf0\x09"),
    ):
        connection = opened(version)
        connection.framer.feed(header)
        assert connection.next_packet() is None


@table("case", PACKET_CASES, ids=lambda case: case.name)
def test_every_packet_of_the_tables_has_a_length_that_it_can_have(case: PacketCase) -> None:
    first_byte, body = body_of(case.raw)
    check_remaining_length(first_byte, len(body), case.version)


@pytest.mark.uncovered
@given(packets_of_a_version())
def test_every_packet_has_a_length_that_it_can_have(given_packet: tuple[Packet, int]) -> None:
    packet, version = given_packet
    first_byte, body = body_of(encode(packet, version))
    check_remaining_length(first_byte, len(body), version)


IMPOSSIBLE = [
    (version, first_byte, length)
    for version, bounds in BOUNDS.items()
    for first_byte, (least, most) in bounds.items()
    for length in (*range(least), *range(most + 1, min(most + 4, VARIABLE_BYTE_INTEGER_LIMIT)))
]
"""Lengths out of bounds that are short enough to look at every packet that has one."""


@given(st.sampled_from(IMPOSSIBLE), st.data())
def test_no_packet_has_another(impossible: tuple[int, int, int], data: st.DataObject) -> None:
    version, first_byte, length = impossible
    body = data.draw(st.binary(min_size=length, max_size=length))
    with pytest.raises(MqttError):
        decode(body, first_byte, 0, length, version)

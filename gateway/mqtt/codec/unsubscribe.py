"""UNSUBSCRIBE and UNSUBACK (MQTT 5, sections 3.10 and 3.11)."""

from collections.abc import Iterator

from gateway.mqtt.codec.fields import (
    excess_bytes,
    read_packet_identifier,
    write_string,
    write_two_byte_integer,
)
from gateway.mqtt.codec.fixed_header import FIRST_BYTES, write_packet
from gateway.mqtt.codec.property_codec import read_properties, write_properties
from gateway.mqtt.codec.reason_code_codec import read_reason_codes
from gateway.mqtt.errors import ProtocolError
from gateway.mqtt.packets import MQTT_5, PacketType, UnsubAck, Unsubscribe
from gateway.mqtt.topics import read_topic_filter


class TopicFilters:
    """The topic filters of an UNSUBSCRIBE, read whenever they are iterated.

    Iterating raises MalformedPacket at the first that is none.
    """

    __slots__ = ("_buffer", "_end", "_position")

    def __init__(self, buffer: bytes, position: int, end: int) -> None:
        self._buffer = buffer
        self._position = position
        self._end = end

    def __iter__(self) -> Iterator[str]:
        """Read the topic filters from the first on."""
        buffer, position, end = self._buffer, self._position, self._end
        while position < end:
            topic_filter, position = read_topic_filter(buffer, position, end)
            yield topic_filter


def read_unsubscribe(buffer: bytes, position: int, end: int, version: int) -> Unsubscribe:
    """Read an UNSUBSCRIBE, whose topic filters are read when they are iterated."""
    packet_id, position = read_packet_identifier(buffer, position, end)
    properties, position = read_properties(buffer, position, end, PacketType.UNSUBSCRIBE, version)
    if position == end:  # [MQTT-3.10.3-2]
        raise ProtocolError("UNSUBSCRIBE without a topic filter")
    return Unsubscribe(packet_id, TopicFilters(buffer, position, end), properties)


def write_unsubscribe(packet: Unsubscribe, version: int) -> bytes:
    """Return an UNSUBSCRIBE."""
    return write_packet(
        FIRST_BYTES[PacketType.UNSUBSCRIBE],
        write_two_byte_integer(packet.packet_id),
        write_properties(packet.properties, PacketType.UNSUBSCRIBE, version),
        *map(write_string, packet.topic_filters),
    )


def read_unsuback(buffer: bytes, position: int, end: int, version: int) -> UnsubAck:
    """Read an UNSUBACK, which has no reason codes before MQTT 5."""
    packet_id, position = read_packet_identifier(buffer, position, end)
    if version < MQTT_5:
        if position != end:
            raise excess_bytes("UNSUBACK", position, end)
        return UnsubAck(packet_id)
    properties, position = read_properties(buffer, position, end, PacketType.UNSUBACK, version)
    reason_codes = read_reason_codes(buffer, position, end, PacketType.UNSUBACK, version)
    return UnsubAck(packet_id, reason_codes, properties)


def write_unsuback(packet: UnsubAck, version: int) -> bytes:
    """Return an UNSUBACK, without reason codes before MQTT 5."""
    return write_packet(
        FIRST_BYTES[PacketType.UNSUBACK],
        write_two_byte_integer(packet.packet_id),
        write_properties(packet.properties, PacketType.UNSUBACK, version),
        bytes(packet.reason_codes) if version == MQTT_5 else b"",
    )

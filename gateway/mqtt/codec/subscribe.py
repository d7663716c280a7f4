"""SUBSCRIBE and UNSUBSCRIBE with their answers (MQTT 5, sections 3.8 to 3.11)."""

from collections.abc import Iterator

from gateway.mqtt.codec.fields import (
    FIRST_BYTES,
    excess_bytes,
    missing_bytes,
    read_packet_identifier,
    write_byte,
    write_packet,
    write_string,
    write_two_byte_integer,
)
from gateway.mqtt.codec.property_codec import read_properties, write_properties
from gateway.mqtt.codec.reason_code_codec import read_reason_codes
from gateway.mqtt.errors import MalformedPacket, ProtocolError
from gateway.mqtt.packets import (
    MQTT_5,
    PacketType,
    SubAck,
    Subscribe,
    SubscriptionRequest,
    UnsubAck,
    Unsubscribe,
)
from gateway.mqtt.reason_codes import FAILURE
from gateway.mqtt.topics import SHARED_PREFIX, read_topic_filter

MAXIMUM_QOS = 0x03
NO_LOCAL = 0x04
RETAIN_AS_PUBLISHED = 0x08
RETAIN_HANDLING_SHIFT = 4
RESERVED = 0xC0
RESERVED_BEFORE_MQTT_5 = 0xFC

_BEFORE_MQTT_5 = bytes(min(code, FAILURE) for code in range(256))
"""The return code for each reason code."""


class Requests:
    """The requests of a SUBSCRIBE, read each time they are iterated: there may be 700,000.

    Iterating raises MalformedPacket or ProtocolError at the first invalid one.
    """

    __slots__ = ("_buffer", "_end", "_position", "_version")

    def __init__(self, buffer: bytes, position: int, end: int, version: int) -> None:
        self._buffer = buffer
        self._position = position
        self._end = end
        self._version = version

    def __iter__(self) -> Iterator[SubscriptionRequest]:
        """Read the requests from the first on."""
        buffer, position, end = self._buffer, self._position, self._end
        reserved = RESERVED if self._version == MQTT_5 else RESERVED_BEFORE_MQTT_5
        while position < end:
            topic_filter, position = read_topic_filter(buffer, position, end)
            if position >= end:
                raise missing_bytes("subscription options", position, 1, end)
            options = buffer[position]
            position += 1
            if options & reserved:  # [MQTT-3.8.3-5]
                message = f"subscription options 0x{options:02X}: a reserved bit is set"
                raise MalformedPacket(message)
            qos, retain_handling = options & MAXIMUM_QOS, options >> RETAIN_HANDLING_SHIFT
            if qos == 3:  # section 3.8.3.1; MQTT 3.1.1: [MQTT-3-8.3-4]
                raise ProtocolError("subscription with QoS 3; it must be 0, 1 or 2")
            if retain_handling == 3:
                raise ProtocolError("subscription with retain handling 3; it must be 0, 1 or 2")
            no_local = options & NO_LOCAL == NO_LOCAL
            if no_local and topic_filter.startswith(SHARED_PREFIX):  # [MQTT-3.8.3-4]
                raise ProtocolError("No Local on a shared subscription")
            as_published = options & RETAIN_AS_PUBLISHED == RETAIN_AS_PUBLISHED
            yield SubscriptionRequest(topic_filter, qos, no_local, as_published, retain_handling)


def read_subscribe(buffer: bytes, position: int, end: int, version: int) -> Subscribe:
    """Read a SUBSCRIBE, whose requests are read when they are iterated.

    The broker decides whether their topic filters are allowed.
    """
    packet_id, position = read_packet_identifier(buffer, position, end)
    properties, position = read_properties(buffer, position, end, PacketType.SUBSCRIBE, version)
    if position == end:  # [MQTT-3.8.3-2]
        raise ProtocolError("SUBSCRIBE without a topic filter")
    return Subscribe(packet_id, Requests(buffer, position, end, version), properties)


def write_subscribe(packet: Subscribe, version: int) -> bytes:
    """Return a SUBSCRIBE; before MQTT 5 QoS is the only option."""
    parts = [
        write_two_byte_integer(packet.packet_id),
        write_properties(packet.properties, PacketType.SUBSCRIBE, version),
    ]
    for request in packet.requests:
        parts.append(write_string(request.topic_filter))
        parts.append(write_byte(_options(request, version)))
    return write_packet(FIRST_BYTES[PacketType.SUBSCRIBE], *parts)


def _options(request: SubscriptionRequest, version: int) -> int:
    if version < MQTT_5:
        return request.qos
    return (
        request.qos
        | request.no_local * NO_LOCAL
        | request.retain_as_published * RETAIN_AS_PUBLISHED
        | request.retain_handling << RETAIN_HANDLING_SHIFT
    )


def read_suback(buffer: bytes, position: int, end: int, version: int) -> SubAck:
    """Read a SUBACK."""
    packet_id, position = read_packet_identifier(buffer, position, end)
    properties, position = read_properties(buffer, position, end, PacketType.SUBACK, version)
    reason_codes = read_reason_codes(buffer, position, end, PacketType.SUBACK, version)
    return SubAck(packet_id, reason_codes, properties)


def write_suback(packet: SubAck, version: int) -> bytes:
    """Return a SUBACK; before MQTT 5 every failure is 0x80."""
    codes = bytes(packet.reason_codes)
    if version < MQTT_5:
        codes = codes.translate(_BEFORE_MQTT_5)
    return write_packet(
        FIRST_BYTES[PacketType.SUBACK],
        write_two_byte_integer(packet.packet_id),
        write_properties(packet.properties, PacketType.SUBACK, version),
        codes,
    )


class TopicFilters:
    """The topic filters of an UNSUBSCRIBE, read each time they are iterated.

    Iterating raises MalformedPacket at the first invalid one.
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

"""PUBLISH, whose properties stay encoded until they are needed (MQTT 5, section 3.3)."""

from dataclasses import replace
from typing import Final

from gateway.mqtt.codec.fields import (
    FIRST_BYTES,
    missing_bytes,
    read_packet_identifier,
    read_variable_byte_integer,
    to_text,
    write_four_byte_integer,
    write_packet,
    write_string,
    write_two_byte_integer,
    write_variable_byte_integer,
)
from gateway.mqtt.codec.property_codec import (
    read_fields,
    read_properties,
    write_fields,
    write_properties,
)
from gateway.mqtt.errors import MalformedPacket, ProtocolError
from gateway.mqtt.packets import MQTT_5, PacketType, Publish
from gateway.mqtt.properties import NO_PROPERTIES, Properties
from gateway.mqtt.topics import check_topic_name

MAXIMUM_CACHED = 256
"""Property blocks that are cached; when the cache is full it is cleared."""

LARGEST_CACHED = 256
"""Bytes of the largest of them, so that all together occupy 300 KiB at most."""

_EXPIRY: Final = b"\x02"
_IDENTIFIER: Final = b"\x0b"
_ALIAS: Final = b"\x23"

_PUBLISH = int(PacketType.PUBLISH)
_OF_ONE_CONNECTION = ("message_expiry_interval", "subscription_identifiers", "topic_alias")

# Compiled, these are C names that no other module sees.
_MAXIMUM_CACHED = MAXIMUM_CACHED
_LARGEST_CACHED = LARGEST_CACHED


class PublishProperties:
    """The publisher's properties of its messages, which a server forwards unaltered.

    `data` are the fields without topic alias, subscription identifiers and message expiry interval,
    which is `expiry`, in seconds, None without one. Decoded fields are stored only for small
    blocks, and while a cache has them, since they occupy many times their bytes.
    """

    __slots__ = ("_fields", "alias", "data", "expiry")

    def __init__(self, data: bytes, fields: Properties) -> None:
        self.data = data
        self.expiry = fields.message_expiry_interval
        self.alias = fields.topic_alias
        self._fields = fields if len(data) <= _LARGEST_CACHED else None

    @property
    def fields(self) -> Properties:
        """All of them, decoded."""
        if self._fields is not None:
            return self._fields
        fields = read_fields(self.data, 0, len(self.data), _PUBLISH)
        return replace(fields, message_expiry_interval=self.expiry)

    def forget_fields(self) -> None:
        """Store only the bytes: the messages may wait long, and nothing shares the fields."""
        self._fields = None


NO_PUBLISH_PROPERTIES: Final = PublishProperties(b"", NO_PROPERTIES)
"""Those of every message without properties."""


class PropertyCache:
    """Reads property blocks, and caches small ones.

    `misses` counts those that had to be read.
    """

    __slots__ = ("_known", "misses")

    def __init__(self) -> None:
        self._known: dict[bytes, PublishProperties] = {}
        self.misses = 0

    def read(self, block: bytes) -> PublishProperties:
        """Return the properties of a PUBLISH, given without their length.

        Raises MalformedPacket or ProtocolError for what a client may not send.
        """
        known = self._known.get(block)
        if known is not None:
            return known
        self.misses += 1
        fields = read_fields(block, 0, len(block), _PUBLISH)
        if fields.subscription_identifiers:  # [MQTT-3.3.4-6]
            raise ProtocolError("PUBLISH from a client with a subscription identifier")
        properties = of_fields(fields)
        if len(block) <= _LARGEST_CACHED:
            if len(self._known) >= _MAXIMUM_CACHED:
                self._forget()
            self._known[block] = properties
        return properties

    def _forget(self) -> None:
        for properties in self._known.values():
            properties.forget_fields()
        self._known.clear()


def of_fields(fields: Properties) -> PublishProperties:
    """Return the same properties, with those that are forwarded as bytes."""
    if fields is NO_PROPERTIES:
        return NO_PUBLISH_PROPERTIES
    return PublishProperties(write_fields(fields, _PUBLISH, without=_OF_ONE_CONNECTION), fields)


def property_block(
    properties: PublishProperties,
    expiry: int | None,
    subscription_identifiers: tuple[int, ...],
    alias: int,
    last: bytes = b"",
) -> bytes:
    """Return a property block with its length, as it is sent on one connection.

    `expiry` is the rest of the message expiry interval [MQTT-3.3.2-6], `alias` 0 for none, and
    `last` are further properties behind all others.
    """
    data = properties.data
    if expiry is not None:
        data += _EXPIRY + write_four_byte_integer(expiry)
    for identifier in subscription_identifiers:  # [MQTT-3.3.4-3]
        data += _IDENTIFIER + write_variable_byte_integer(identifier)
    if alias:
        data += _ALIAS + write_two_byte_integer(alias)
    data += last
    return write_variable_byte_integer(len(data)) + data


def block_bounds(buffer: bytes, position: int, end: int) -> tuple[int, int]:
    """Return where the fields after a property length begin and end; raise MalformedPacket."""
    if position < end and buffer[position] < 0x80:
        length = buffer[position]
        position += 1
    else:
        length, position = read_variable_byte_integer(buffer, position, end, "property length")
    if position + length > end:
        raise missing_bytes("properties", position, length, end)
    return position, position + length


RETAIN = 0x01
QOS_SHIFT = 1
DUP = 0x08

_PUBLISH = int(PacketType.PUBLISH)
_QOS = 0x06
_FIRST_BYTE = FIRST_BYTES[PacketType.PUBLISH]


def publish_first_byte(qos: int, retain: bool, dup: bool) -> int:
    """Return the first byte of a PUBLISH with these flags."""
    return _FIRST_BYTE | dup * DUP | qos << QOS_SHIFT | retain * RETAIN


FLAGS = {
    publish_first_byte(qos, retain, dup): (qos, retain, dup)
    for qos in (0, 1, 2)  # [MQTT-3.3.1-4]
    for retain in (False, True)
    for dup in (False, True)
    if qos or not dup  # [MQTT-3.3.1-2]
}
"""The valid first bytes of a PUBLISH, with the QoS, RETAIN and DUP of each."""


def read_publish(buffer: bytes, first_byte: int, start: int, end: int, version: int) -> Publish:
    """Read a PUBLISH; `first_byte` holds its flags. Its topic is empty only with an alias."""
    flags = FLAGS.get(first_byte)
    if flags is None:
        raise wrong_flags(first_byte)
    qos, retain, dup = flags
    position = start + 2
    if position > end:
        raise missing_bytes("topic name", start, 2, end)
    topic_end = position + (buffer[start] << 8 | buffer[start + 1])
    if topic_end > end:
        raise missing_bytes("topic name", position, topic_end - position, end)
    topic = to_text(buffer[position:topic_end], "topic name")  # [MQTT-3.3.2-1]
    if "+" in topic or "#" in topic:  # [MQTT-3.3.2-2]
        check_topic_name(topic)
    position = topic_end
    packet_id = 0
    if qos:  # [MQTT-2.2.1-2]
        packet_id, position = read_packet_identifier(buffer, position, end)
    properties = NO_PROPERTIES
    if version == MQTT_5:
        properties, position = read_properties(buffer, position, end, _PUBLISH, version)
    if not topic:
        _check_alias(properties.topic_alias, version)
    return Publish(topic, buffer[position:end], qos, retain, dup, packet_id, properties)


def read_publish_head(
    buffer: bytes, first_byte: int, start: int, end: int, mqtt5: bool
) -> tuple[int, int, int]:
    """Return where the topic name ends, the properties begin and the payload begins.

    Properties begin after their length, and end where the payload begins. Topic name and properties
    are not checked.
    """
    if first_byte not in FLAGS:
        raise wrong_flags(first_byte)
    position = start + 2
    if position > end:
        raise missing_bytes("topic name", start, 2, end)
    name_end = position = position + (buffer[start] << 8 | buffer[start + 1])
    if name_end > end:
        raise missing_bytes("topic name", start + 2, name_end - start - 2, end)
    if first_byte & _QOS:  # [MQTT-2.2.1-2]
        position += 2
        if position > end or not (buffer[name_end] or buffer[name_end + 1]):
            read_packet_identifier(buffer, name_end, end)  # which raises
    if not mqtt5:
        return name_end, position, position
    if position < end and not buffer[position]:  # most packets have no properties
        return name_end, position + 1, position + 1
    fields, payload = block_bounds(buffer, position, end)
    return name_end, fields, payload


def wrong_flags(first_byte: int) -> MalformedPacket:
    """Return the error for flags that no PUBLISH has [MQTT-3.3.1-2, MQTT-3.3.1-4]."""
    return MalformedPacket(f"PUBLISH 0x{first_byte:02X}: QoS 3, or DUP at QoS 0")


def _check_alias(topic_alias: int | None, version: int) -> None:
    """Raise ProtocolError for an empty topic name without an alias (section 3.3.2.3.4)."""
    if version < MQTT_5:
        check_topic_name("")
    if topic_alias is None:
        raise ProtocolError("PUBLISH with neither a topic name nor a topic alias")


def write_publish(packet: Publish, version: int) -> bytes:
    """Return a PUBLISH."""
    return write_packet(
        publish_first_byte(packet.qos, packet.retain, packet.dup),
        write_string(packet.topic),
        write_two_byte_integer(packet.packet_id) if packet.qos else b"",  # [MQTT-2.2.1-2]
        write_properties(packet.properties, PacketType.PUBLISH, version),
        packet.payload,
    )

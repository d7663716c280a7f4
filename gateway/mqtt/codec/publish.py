"""PUBLISH: a message on its way (MQTT 5, section 3.3)."""

from gateway.mqtt.codec.fields import (
    FIRST_BYTES,
    missing_bytes,
    read_packet_identifier,
    to_text,
    write_packet,
    write_string,
    write_two_byte_integer,
)
from gateway.mqtt.codec.property_codec import read_properties, write_properties
from gateway.mqtt.codec.publish_properties import block_bounds
from gateway.mqtt.errors import MalformedPacket, ProtocolError
from gateway.mqtt.packets import MQTT_5, PacketType, Publish
from gateway.mqtt.properties import NO_PROPERTIES
from gateway.mqtt.topics import check_topic_name

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
"""The first bytes that a PUBLISH can have, and the QoS, RETAIN and DUP that each says."""


def read_publish(buffer: bytes, first_byte: int, start: int, end: int, version: int) -> Publish:
    """Read a PUBLISH; `first_byte` holds its flags. Its topic is empty only beside an alias."""
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

    Properties begin behind their length, and end where the payload begins. Topic name and
    properties are not looked at.
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
            read_packet_identifier(buffer, name_end, end)  # which says what is wrong
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

"""Adjacent PUBLISH packets, read back from storage."""

from gateway.mqtt.codec.fields import to_text
from gateway.mqtt.codec.publish import NO_PUBLISH_PROPERTIES, PropertyCache, read_publish_head
from gateway.mqtt.errors import MalformedPacket, ProtocolError
from gateway.mqtt.framing import Framer
from gateway.mqtt.publication import PacketBatch, Publication

MAXIMUM_BYTES = 64 * 1024 * 1024
"""Bytes of packets that are read: far more than are ever stored together."""

_PUBLISH = 0x30
_QOS = 0x06


def stored_publication(data: bytes, topic: str, *, mqtt5: bool) -> Publication:
    """Return the messages with the packets `data`, of this topic or, if it is "", of any topics.

    Raises ValueError if they are not.
    """
    framer = Framer(MAXIMUM_BYTES)
    framer.feed(data)
    try:
        first_byte = framer.next_frame()
        if first_byte & 0xF0 != _PUBLISH:
            raise ValueError("packets that are no PUBLISH")
        buffer, body, end = framer.buffer, framer.body, framer.end
        name_end, fields, payload = read_publish_head(buffer, first_byte, body, end, mqtt5)
        properties = NO_PUBLISH_PROPERTIES
        if fields < payload:
            properties = PropertyCache().read(buffer[fields:payload])
            properties.forget_fields()
        name, place = buffer[body:name_end], name_end + (2 if first_byte & _QOS else 0)
        identifier = (name_end if first_byte & _QOS else payload) - body
        batch = PacketBatch(buffer[:end], end, body, identifier, payload - body)
        same_route = None if topic else _is_topic_name
        mixed = framer.extend(batch, len(data), len(data), buffer[place:payload], same_route)
        found = to_text(name[2:], "topic name")
    except (MalformedPacket, ProtocolError) as error:
        raise ValueError(f"a batch of packets: {error}") from error
    if not found or topic not in ("", found):
        raise ValueError("packets of another topic")
    if len(batch.data) != len(data):
        raise ValueError("a batch of packets with others among them")
    publication = Publication(batch, first_byte, mqtt5, name, properties)
    publication.topic, publication.mixed = found, mixed
    return publication


def _is_topic_name(name: bytes) -> bool:
    """Return True, or raise MalformedPacket for an invalid text."""
    return to_text(name[2:], "topic name") != ""

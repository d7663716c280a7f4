"""A packet's first byte and remaining length (MQTT 5, section 2.1)."""

from gateway.mqtt.codec.fields import write_variable_byte_integer
from gateway.mqtt.packets import PacketType

FIRST_BYTES = {
    packet_type: packet_type << 4
    | (packet_type in (PacketType.PUBREL, PacketType.SUBSCRIBE, PacketType.UNSUBSCRIBE)) << 1
    for packet_type in PacketType
}
"""Each type with its fixed flags; PUBLISH puts its own in their place [MQTT-2.1.3-1]."""


def write_packet(first_byte: int, *parts: bytes) -> bytes:
    """Return a whole packet; raises ValueError for a body of more than 268,435,455 bytes."""
    body = b"".join(parts)
    return first_byte.to_bytes(1, "big") + write_variable_byte_integer(len(body)) + body

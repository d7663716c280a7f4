"""DISCONNECT: the last packet of a connection (MQTT 5, section 3.14)."""

from gateway.mqtt.fields import excess_bytes, write_byte
from gateway.mqtt.fixed_header import FIRST_BYTES, write_packet
from gateway.mqtt.packets import MQTT_5, Disconnect, PacketType
from gateway.mqtt.properties import NO_PROPERTIES
from gateway.mqtt.property_codec import read_properties, write_properties
from gateway.mqtt.reason_code_table import read_reason_code


def read_disconnect(buffer: bytes, position: int, end: int, version: int) -> Disconnect:
    """Read a DISCONNECT; reason code and properties may be left out in MQTT 5."""
    if position == end:
        return Disconnect()
    if version < MQTT_5:
        raise excess_bytes("DISCONNECT", position, end)
    reason_code, position = read_reason_code(buffer, position, end, PacketType.DISCONNECT)
    if position == end:  # section 3.14.2.2.1
        return Disconnect(reason_code)
    properties, position = read_properties(buffer, position, end, PacketType.DISCONNECT, version)
    if position != end:
        raise excess_bytes("DISCONNECT", position, end)
    return Disconnect(reason_code, properties)


def write_disconnect(packet: Disconnect, version: int) -> bytes:
    """Return the shortest form of a DISCONNECT; before MQTT 5 it has no body."""
    parts = []
    if version == MQTT_5 and packet.properties != NO_PROPERTIES:
        parts.append(write_byte(packet.reason_code))
        parts.append(write_properties(packet.properties, PacketType.DISCONNECT, version))
    elif version == MQTT_5 and packet.reason_code:
        parts.append(write_byte(packet.reason_code))
    return write_packet(FIRST_BYTES[PacketType.DISCONNECT], *parts)

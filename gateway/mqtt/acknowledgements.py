"""PUBACK, PUBREC, PUBREL and PUBCOMP, which have one form (MQTT 5, sections 3.4 to 3.7)."""

from gateway.mqtt.fields import (
    excess_bytes,
    read_packet_identifier,
    write_byte,
    write_two_byte_integer,
)
from gateway.mqtt.fixed_header import FIRST_BYTES, write_packet
from gateway.mqtt.packets import MQTT_5, PacketType, PubAck, PubComp, PubRec, PubRel
from gateway.mqtt.properties import NO_PROPERTIES, Properties
from gateway.mqtt.property_codec import read_properties, write_properties
from gateway.mqtt.reason_code_table import read_reason_code
from gateway.mqtt.reason_codes import ReasonCode


def read_puback(buffer: bytes, position: int, end: int, version: int) -> PubAck:
    """Read a PUBACK."""
    return PubAck(*_read(buffer, position, end, version, PacketType.PUBACK))


def read_pubrec(buffer: bytes, position: int, end: int, version: int) -> PubRec:
    """Read a PUBREC."""
    return PubRec(*_read(buffer, position, end, version, PacketType.PUBREC))


def read_pubrel(buffer: bytes, position: int, end: int, version: int) -> PubRel:
    """Read a PUBREL."""
    return PubRel(*_read(buffer, position, end, version, PacketType.PUBREL))


def read_pubcomp(buffer: bytes, position: int, end: int, version: int) -> PubComp:
    """Read a PUBCOMP."""
    return PubComp(*_read(buffer, position, end, version, PacketType.PUBCOMP))


def _read(
    buffer: bytes, position: int, end: int, version: int, packet_type: PacketType
) -> tuple[int, ReasonCode, Properties]:
    """Read the packet identifier; reason code and properties may be left out in MQTT 5."""
    packet_id, position = read_packet_identifier(buffer, position, end)
    if position == end:
        return packet_id, ReasonCode.SUCCESS, NO_PROPERTIES
    if version < MQTT_5:
        raise excess_bytes(packet_type.name, position, end)
    reason_code, position = read_reason_code(buffer, position, end, packet_type)
    if position == end:
        return packet_id, reason_code, NO_PROPERTIES
    properties, position = read_properties(buffer, position, end, packet_type, version)
    if position != end:
        raise excess_bytes(packet_type.name, position, end)
    return packet_id, reason_code, properties


def write_puback(packet: PubAck, version: int) -> bytes:
    """Return a PUBACK."""
    return _write(packet, version, PacketType.PUBACK)


def write_pubrec(packet: PubRec, version: int) -> bytes:
    """Return a PUBREC."""
    return _write(packet, version, PacketType.PUBREC)


def write_pubrel(packet: PubRel, version: int) -> bytes:
    """Return a PUBREL."""
    return _write(packet, version, PacketType.PUBREL)


def write_pubcomp(packet: PubComp, version: int) -> bytes:
    """Return a PUBCOMP."""
    return _write(packet, version, PacketType.PUBCOMP)


def _write(
    packet: PubAck | PubRec | PubRel | PubComp, version: int, packet_type: PacketType
) -> bytes:
    """Return the shortest form; before MQTT 5 an acknowledgement has no reason code."""
    parts = [write_two_byte_integer(packet.packet_id)]
    if version == MQTT_5 and packet.properties != NO_PROPERTIES:
        parts.append(write_byte(packet.reason_code))
        parts.append(write_properties(packet.properties, packet_type, version))
    elif version == MQTT_5 and packet.reason_code:
        parts.append(write_byte(packet.reason_code))
    return write_packet(FIRST_BYTES[packet_type], *parts)

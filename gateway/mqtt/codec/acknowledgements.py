"""PUBACK, PUBREC, PUBREL and PUBCOMP, which have one format; PINGREQ and PINGRESP."""

from gateway.mqtt.codec.fields import (
    FIRST_BYTES,
    excess_bytes,
    read_packet_identifier,
    write_packet,
    write_two_byte_integer,
)
from gateway.mqtt.codec.reason_code_codec import (
    read_reason_and_properties,
    write_reason_and_properties,
)
from gateway.mqtt.packets import (
    MQTT_5,
    PacketType,
    PingReq,
    PingResp,
    PubAck,
    PubComp,
    PubRec,
    PubRel,
)
from gateway.mqtt.properties import NO_PROPERTIES, Properties
from gateway.mqtt.reason_codes import ReasonCode

_HEADS = {packet_type: bytes((first_byte, 2)) for packet_type, first_byte in FIRST_BYTES.items()}
"""The fixed header of an acknowledgement that has only its packet identifier."""


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
    packet_id, position = read_packet_identifier(buffer, position, end)
    reason_code, properties = read_reason_and_properties(
        buffer, position, end, packet_type, version
    )
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
    packet_id = write_two_byte_integer(packet.packet_id)
    if version < MQTT_5 or (packet.properties is NO_PROPERTIES and not packet.reason_code):
        return _HEADS[packet_type] + packet_id
    return write_packet(
        FIRST_BYTES[packet_type],
        packet_id,
        write_reason_and_properties(packet.reason_code, packet.properties, packet_type, version),
    )


def read_pingreq(_buffer: bytes, position: int, end: int, _version: int) -> PingReq:
    """Read a PINGREQ."""
    if position != end:
        raise excess_bytes("PINGREQ", position, end)
    return PingReq()


def read_pingresp(_buffer: bytes, position: int, end: int, _version: int) -> PingResp:
    """Read a PINGRESP."""
    if position != end:
        raise excess_bytes("PINGRESP", position, end)
    return PingResp()


def write_pingreq(_packet: PingReq, _version: int) -> bytes:
    """Return a PINGREQ."""
    return write_packet(FIRST_BYTES[PacketType.PINGREQ])


def write_pingresp(_packet: PingResp, _version: int) -> bytes:
    """Return a PINGRESP."""
    return write_packet(FIRST_BYTES[PacketType.PINGRESP])

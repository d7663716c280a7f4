"""Reason codes, the end of packets that have one and properties, and AUTH and DISCONNECT."""

from gateway.mqtt.codec.fields import (
    FIRST_BYTES,
    excess_bytes,
    read_byte,
    write_byte,
    write_packet,
    write_variable_byte_integer,
)
from gateway.mqtt.codec.property_codec import read_properties, write_fields
from gateway.mqtt.errors import MalformedPacket, ProtocolError
from gateway.mqtt.packets import MQTT_5, Auth, Disconnect, PacketType
from gateway.mqtt.properties import NO_PROPERTIES, Properties
from gateway.mqtt.reason_codes import ReasonCode


def _by_byte(*codes: int) -> dict[int, ReasonCode]:
    return {code: ReasonCode(code) for code in codes}


_PUBLISHED = _by_byte(0x00, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99)
_RELEASED = _by_byte(0x00, 0x92)

REASON_CODES: dict[PacketType, dict[int, ReasonCode]] = {
    PacketType.CONNACK: _by_byte(
        *(0x00, 0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8A, 0x8C),
        *(0x90, 0x95, 0x97, 0x99, 0x9A, 0x9B, 0x9C, 0x9D, 0x9F),
    ),
    PacketType.PUBACK: _PUBLISHED,
    PacketType.PUBREC: _PUBLISHED,
    PacketType.PUBREL: _RELEASED,
    PacketType.PUBCOMP: _RELEASED,
    PacketType.SUBACK: _by_byte(
        *(0x00, 0x01, 0x02, 0x80, 0x83, 0x87, 0x8F, 0x91, 0x97, 0x9E, 0xA1, 0xA2)
    ),
    PacketType.UNSUBACK: _by_byte(0x00, 0x11, 0x80, 0x83, 0x87, 0x8F, 0x91),
    PacketType.DISCONNECT: _by_byte(
        *(0x00, 0x04, 0x80, 0x81, 0x82, 0x83, 0x87, 0x89, 0x8B, 0x8C, 0x8D, 0x8E, 0x8F),
        *(0x90, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9A, 0x9B, 0x9C, 0x9D, 0x9E, 0x9F),
        *(0xA0, 0xA1, 0xA2),
    ),
    PacketType.AUTH: _by_byte(0x00, 0x18, 0x19),
}
"""By packet type the reason codes that it may have, by their byte."""

GRANTED_QOS_CODES = _by_byte(0x00, 0x01, 0x02, 0x80)
"""The return codes of SUBACK before MQTT 5 (MQTT 3.1.1, section 3.9.3)."""


def to_reason_code(code: int, packet_type: PacketType) -> ReasonCode:
    """Return the reason code; raises MalformedPacket if a `packet_type` cannot have it."""
    reason_code = REASON_CODES[packet_type].get(code)
    if reason_code is None:
        raise _unknown(code, packet_type)
    return reason_code


def read_reason_codes(
    buffer: bytes, position: int, end: int, packet_type: PacketType, version: int
) -> list[ReasonCode]:
    """Read the reason codes up to `end`, at least one; each as `to_reason_code` does."""
    known = REASON_CODES[packet_type] if version == MQTT_5 else GRANTED_QOS_CODES
    if position == end:
        raise MalformedPacket(f"{packet_type.name} without a reason code")
    try:
        return [known[code] for code in buffer[position:end]]
    except KeyError as error:
        raise _unknown(error.args[0], packet_type) from None


def read_reason_and_properties(
    buffer: bytes, position: int, end: int, packet_type: PacketType, version: int
) -> tuple[ReasonCode, Properties]:
    """Read the end of a packet that may omit both, or only the properties."""
    if position == end:
        return ReasonCode.SUCCESS, NO_PROPERTIES
    if version < MQTT_5:
        raise excess_bytes(packet_type.name, position, end)
    code, position = read_byte(buffer, position, end, "reason code")
    reason_code = to_reason_code(code, packet_type)
    if position == end:
        return reason_code, NO_PROPERTIES
    properties, position = read_properties(buffer, position, end, packet_type, version)
    if position != end:
        raise excess_bytes(packet_type.name, position, end)
    return reason_code, properties


def write_reason_and_properties(
    reason_code: ReasonCode, properties: Properties, packet_type: PacketType, version: int
) -> bytes:
    """Return the shortest form of both; before MQTT 5 that is nothing."""
    if version < MQTT_5:
        return b""
    written = b"" if properties is NO_PROPERTIES else write_fields(properties, packet_type)
    if written:
        return write_byte(reason_code) + write_variable_byte_integer(len(written)) + written
    return write_byte(reason_code) if reason_code else b""


def _unknown(code: int, packet_type: PacketType) -> MalformedPacket:
    return MalformedPacket(f"reason code 0x{code:02X} is not one of {packet_type.name}")


def read_auth(buffer: bytes, position: int, end: int, version: int) -> Auth:
    """Read an AUTH; one with a body must name its authentication method."""
    if version < MQTT_5:
        raise MalformedPacket("packet type 15 is reserved before MQTT 5")
    packet = Auth(*read_reason_and_properties(buffer, position, end, PacketType.AUTH, version))
    if position != end and packet.properties.authentication_method is None:  # section 3.15.2.2.2
        raise ProtocolError("AUTH without an authentication method")
    return packet


def write_auth(packet: Auth, version: int) -> bytes:
    """Return an AUTH; raises ValueError before MQTT 5."""
    if version < MQTT_5:
        raise ValueError("AUTH exists only in MQTT 5")
    return write_packet(
        FIRST_BYTES[PacketType.AUTH],
        write_reason_and_properties(
            packet.reason_code, packet.properties, PacketType.AUTH, version
        ),
    )


def read_disconnect(buffer: bytes, position: int, end: int, version: int) -> Disconnect:
    """Read a DISCONNECT, of a client or of a server."""
    return Disconnect(
        *read_reason_and_properties(buffer, position, end, PacketType.DISCONNECT, version)
    )


def write_disconnect(packet: Disconnect, version: int) -> bytes:
    """Return a DISCONNECT; before MQTT 5 it has no body."""
    return write_packet(
        FIRST_BYTES[PacketType.DISCONNECT],
        write_reason_and_properties(
            packet.reason_code, packet.properties, PacketType.DISCONNECT, version
        ),
    )

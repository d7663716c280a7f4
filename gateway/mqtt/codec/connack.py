"""CONNACK: the server's answer to CONNECT (MQTT 5, section 3.2)."""

from gateway.mqtt.codec.fields import FIRST_BYTES, excess_bytes, read_byte, write_packet
from gateway.mqtt.codec.property_codec import read_properties, write_properties
from gateway.mqtt.codec.reason_code_codec import to_reason_code
from gateway.mqtt.errors import MalformedPacket
from gateway.mqtt.packets import MQTT_3_1, MQTT_5, ConnAck, PacketType
from gateway.mqtt.properties import NO_PROPERTIES, Properties
from gateway.mqtt.reason_codes import RETURN_CODES, ReasonCode

NO_FLAGS = 0x00
SESSION_PRESENT = 0x01

_FIRST_BYTE = FIRST_BYTES[PacketType.CONNACK]

_CODES = 2
"""Bytes of the flags and the reason code together."""

_REASONS = {
    0: ReasonCode.SUCCESS,
    1: ReasonCode.UNSUPPORTED_PROTOCOL_VERSION,
    2: ReasonCode.CLIENT_IDENTIFIER_NOT_VALID,
    3: ReasonCode.SERVER_UNAVAILABLE,
    4: ReasonCode.BAD_USER_NAME_OR_PASSWORD,
    5: ReasonCode.NOT_AUTHORIZED,
}


def read_connack(buffer: bytes, position: int, end: int, version: int) -> ConnAck:
    """Read a CONNACK; a return code of MQTT 3.1.1 becomes the reason code that means it."""
    flags, position = read_byte(buffer, position, end, "connect acknowledge flags")
    if flags & ~(NO_FLAGS if version == MQTT_3_1 else SESSION_PRESENT):  # [MQTT-3.2.2-1]
        raise MalformedPacket(f"connect acknowledge flags 0x{flags:02X}: a reserved bit is set")
    code, position = read_byte(buffer, position, end, "reason code")
    reason_code = _to_reason(code, version)
    properties, position = read_properties(buffer, position, end, PacketType.CONNACK, version)
    if position != end:
        raise excess_bytes("CONNACK", position, end)
    return ConnAck(flags == SESSION_PRESENT, reason_code, properties)


def _to_reason(code: int, version: int) -> ReasonCode:
    if version == MQTT_5:
        return to_reason_code(code, PacketType.CONNACK)
    if code not in _REASONS:
        raise MalformedPacket(f"return code {code}; at most 5")
    return _REASONS[code]


def write_connack(packet: ConnAck, version: int) -> bytes:
    """Return a CONNACK.

    Before MQTT 5 a reason without a return code of its own is told as 3, server unavailable: the
    one that asks the client to come back.
    """
    if version == MQTT_5:
        before, behind = _around_codes(packet.properties)
        return before + bytes((packet.session_present, packet.reason_code)) + behind
    session_present = packet.session_present and version != MQTT_3_1
    code = RETURN_CODES.get(packet.reason_code, RETURN_CODES[ReasonCode.SERVER_UNAVAILABLE])
    return bytes((_FIRST_BYTE, 2, session_present, code))


_last: tuple[Properties, tuple[bytes, bytes]] = (NO_PROPERTIES, (b"\x20\3", b"\0"))


def _around_codes(properties: Properties) -> tuple[bytes, bytes]:
    """Return what stands before flags and reason code, and behind: the properties.

    Most clients are given those of the client before.
    """
    global _last  # noqa: PLW0603 - one pair, replaced as a whole
    if properties is not _last[0]:
        behind = write_properties(properties, PacketType.CONNACK, MQTT_5)
        whole = write_packet(_FIRST_BYTE, bytes(_CODES), behind)
        _last = properties, (whole[: -_CODES - len(behind)], behind)
    return _last[1]

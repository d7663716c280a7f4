"""Which reason codes each packet may carry (MQTT 5, table 2-6)."""

from gateway.mqtt.errors import MalformedPacket
from gateway.mqtt.fields import read_byte
from gateway.mqtt.packets import MQTT_5, PacketType
from gateway.mqtt.reason_codes import ReasonCode

_PUBLISHED = (0x00, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99)
_RELEASED = (0x00, 0x92)

_CODES = {
    PacketType.CONNACK: (
        0x00,
        *range(0x80, 0x8B),
        0x8C,
        0x90,
        0x95,
        0x97,
        *range(0x99, 0x9E),
        0x9F,
    ),
    PacketType.PUBACK: _PUBLISHED,
    PacketType.PUBREC: _PUBLISHED,
    PacketType.PUBREL: _RELEASED,
    PacketType.PUBCOMP: _RELEASED,
    PacketType.SUBACK: (0, 1, 2, 0x80, 0x83, 0x87, 0x8F, 0x91, 0x97, 0x9E, 0xA1, 0xA2),
    PacketType.UNSUBACK: (0x00, 0x11, 0x80, 0x83, 0x87, 0x8F, 0x91),
    PacketType.DISCONNECT: (
        *(0x00, 0x04, 0x80, 0x81, 0x82, 0x83, 0x87, 0x89, 0x8B, 0x8C, 0x8D, 0x8E, 0x8F),
        *(0x90, *range(0x93, 0xA3)),
    ),
    PacketType.AUTH: (0x00, 0x18, 0x19),
}

REASON_CODES: dict[PacketType, dict[int, ReasonCode]] = {
    packet_type: {code: ReasonCode(code) for code in codes} for packet_type, codes in _CODES.items()
}
"""By packet type the reason codes that it may carry, by their byte."""

GRANTED_QOS_CODES = {code: ReasonCode(code) for code in (0, 1, 2, ReasonCode.UNSPECIFIED_ERROR)}
"""The return codes of SUBACK before MQTT 5 (MQTT 3.1.1, section 3.9.3)."""


def to_reason_code(code: int, packet_type: PacketType) -> ReasonCode:
    """Return the reason code; raises MalformedPacket if a `packet_type` cannot carry it."""
    reason_code = REASON_CODES[packet_type].get(code)
    if reason_code is None:
        raise _unknown(code, packet_type)
    return reason_code


def read_reason_code(
    buffer: bytes, position: int, end: int, packet_type: PacketType
) -> tuple[ReasonCode, int]:
    """Read the reason code of a `packet_type`; raises MalformedPacket for one it cannot carry."""
    code, position = read_byte(buffer, position, end, "reason code")
    return to_reason_code(code, packet_type), position


def read_reason_codes(
    buffer: bytes, position: int, end: int, packet_type: PacketType, version: int
) -> list[ReasonCode]:
    """Read all reason codes up to `end`, at least one, as `read_reason_code` does each."""
    known = REASON_CODES[packet_type] if version == MQTT_5 else GRANTED_QOS_CODES
    if position == end:
        raise MalformedPacket(f"{packet_type.name} without a reason code")
    try:
        return [known[code] for code in buffer[position:end]]
    except KeyError as error:
        raise _unknown(error.args[0], packet_type) from None


def _unknown(code: int, packet_type: PacketType) -> MalformedPacket:
    return MalformedPacket(f"reason code 0x{code:02X} is not one of {packet_type.name}")

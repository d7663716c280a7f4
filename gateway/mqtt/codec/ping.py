"""PINGREQ and PINGRESP, two packets without a body (MQTT 5, sections 3.12 and 3.13)."""

from gateway.mqtt.codec.fields import excess_bytes
from gateway.mqtt.codec.fixed_header import FIRST_BYTES, write_packet
from gateway.mqtt.packets import PacketType, PingReq, PingResp


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

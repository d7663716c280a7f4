"""DISCONNECT: the last packet of a connection (MQTT 5, section 3.14)."""

from gateway.mqtt.codec.fixed_header import FIRST_BYTES, write_packet
from gateway.mqtt.codec.reason_code_codec import (
    read_reason_and_properties,
    write_reason_and_properties,
)
from gateway.mqtt.packets import Disconnect, PacketType

_TYPE = PacketType.DISCONNECT


def read_disconnect(buffer: bytes, position: int, end: int, version: int) -> Disconnect:
    """Read a DISCONNECT, of a client or of a server."""
    return Disconnect(*read_reason_and_properties(buffer, position, end, _TYPE, version))


def write_disconnect(packet: Disconnect, version: int) -> bytes:
    """Return a DISCONNECT; before MQTT 5 it has no body."""
    return write_packet(
        FIRST_BYTES[_TYPE],
        write_reason_and_properties(packet.reason_code, packet.properties, _TYPE, version),
    )

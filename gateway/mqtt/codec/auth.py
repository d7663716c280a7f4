"""AUTH: a step of enhanced authentication, new in MQTT 5 (section 3.15)."""

from gateway.mqtt.codec.fixed_header import FIRST_BYTES, write_packet
from gateway.mqtt.codec.reason_code_codec import (
    read_reason_and_properties,
    write_reason_and_properties,
)
from gateway.mqtt.errors import MalformedPacket, ProtocolError
from gateway.mqtt.packets import MQTT_5, Auth, PacketType

_TYPE = PacketType.AUTH


def read_auth(buffer: bytes, position: int, end: int, version: int) -> Auth:
    """Read an AUTH; one with a body must name its authentication method."""
    if version < MQTT_5:
        raise MalformedPacket("packet type 15 is reserved before MQTT 5")
    packet = Auth(*read_reason_and_properties(buffer, position, end, _TYPE, version))
    if position != end and packet.properties.authentication_method is None:  # section 3.15.2.2.2
        raise ProtocolError("AUTH without an authentication method")
    return packet


def write_auth(packet: Auth, version: int) -> bytes:
    """Return an AUTH; raises ValueError before MQTT 5."""
    if version < MQTT_5:
        raise ValueError("AUTH exists only in MQTT 5")
    return write_packet(
        FIRST_BYTES[_TYPE],
        write_reason_and_properties(packet.reason_code, packet.properties, _TYPE, version),
    )

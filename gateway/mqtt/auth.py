"""AUTH: a step of enhanced authentication, new in MQTT 5 (section 3.15)."""

from gateway.mqtt.errors import MalformedPacket, ProtocolError
from gateway.mqtt.fields import excess_bytes, write_byte
from gateway.mqtt.fixed_header import FIRST_BYTES, write_packet
from gateway.mqtt.packets import MQTT_5, Auth, PacketType
from gateway.mqtt.properties import NO_PROPERTIES
from gateway.mqtt.property_codec import read_properties, write_properties
from gateway.mqtt.reason_code_table import read_reason_code


def read_auth(buffer: bytes, position: int, end: int, version: int) -> Auth:
    """Read an AUTH; one with a body names its authentication method (section 3.15.2.2.2)."""
    if version < MQTT_5:
        raise MalformedPacket("packet type 15 is reserved before MQTT 5")
    if position == end:  # section 3.15.2.1
        return Auth()
    reason_code, position = read_reason_code(buffer, position, end, PacketType.AUTH)
    properties, position = read_properties(buffer, position, end, PacketType.AUTH, version)
    if position != end:
        raise excess_bytes("AUTH", position, end)
    if properties.authentication_method is None:
        raise ProtocolError("AUTH without an authentication method")
    return Auth(reason_code, properties)


def write_auth(packet: Auth, version: int) -> bytes:
    """Return the shortest form of an AUTH; raises ValueError before MQTT 5."""
    if version < MQTT_5:
        raise ValueError("AUTH exists only in MQTT 5")
    if not packet.reason_code and packet.properties == NO_PROPERTIES:
        return write_packet(FIRST_BYTES[PacketType.AUTH])
    return write_packet(
        FIRST_BYTES[PacketType.AUTH],
        write_byte(packet.reason_code),
        write_properties(packet.properties, PacketType.AUTH, version),
    )

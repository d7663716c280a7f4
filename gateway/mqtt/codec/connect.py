"""CONNECT and CONNACK: a connection request and its answer (MQTT 5, 3.1 and 3.2)."""

from gateway.mqtt.codec.fields import (
    FIRST_BYTES,
    excess_bytes,
    read_binary,
    read_byte,
    read_string,
    read_two_byte_integer,
    write_binary,
    write_byte,
    write_packet,
    write_string,
    write_two_byte_integer,
)
from gateway.mqtt.codec.property_codec import read_properties, write_properties
from gateway.mqtt.codec.property_table import WILL
from gateway.mqtt.codec.reason_code_codec import to_reason_code
from gateway.mqtt.errors import MalformedPacket, ProtocolError
from gateway.mqtt.packets import MQTT_3_1, MQTT_3_1_1, MQTT_5, ConnAck, Connect, PacketType, Will
from gateway.mqtt.properties import NO_PROPERTIES, Properties
from gateway.mqtt.reason_codes import RETURN_CODES, ReasonCode
from gateway.mqtt.topics import check_topic_name

PROTOCOL_NAMES = {MQTT_3_1: "MQIsdp", MQTT_3_1_1: "MQTT", MQTT_5: "MQTT"}

_BEGINNINGS = {b"\0\4MQTT\4": MQTT_3_1_1, b"\0\4MQTT\5": MQTT_5}
"""Usual beginnings of a CONNECT, protocol name and version: looked up instead of parsed."""

_BEGINNING = 7

BRIDGE_BIT = 0x80
"""The bit of the protocol version that identifies a bridge before MQTT 5, as Mosquitto sets it. A
bridge does not receive its own messages, and retained ones are marked as published."""

RESERVED = 0x01
CLEAN_START = 0x02
WILL_FLAG = 0x04
WILL_QOS_SHIFT = 3
WILL_RETAIN = 0x20
PASSWORD = 0x40
USER_NAME = 0x80


def read_protocol_version(buffer: bytes, position: int, end: int) -> tuple[int, int]:
    """Read the protocol name and version at the start of a CONNECT; return 3, 4 or 5.

    3 and 4 may have the BRIDGE_BIT. Raises MalformedPacket for another name and ProtocolError for a
    version that does not belong to the name, both with UNSUPPORTED_PROTOCOL_VERSION.
    """
    name, position = read_string(buffer, position, end, "protocol name")
    version, position = read_byte(buffer, position, end, "protocol version")
    if name not in PROTOCOL_NAMES.values():  # [MQTT-3.1.2-1]
        raise MalformedPacket(
            f"protocol name {name[:20]!r}; only MQTT and MQIsdp are known",
            ReasonCode.UNSUPPORTED_PROTOCOL_VERSION,
        )
    bare = version & ~BRIDGE_BIT if version != MQTT_5 | BRIDGE_BIT else version
    if PROTOCOL_NAMES.get(bare) != name:  # [MQTT-3.1.2-2]
        raise ProtocolError(
            f"version {version} of protocol {name}; MQTT 4 and 5 and MQIsdp 3 are supported",
            ReasonCode.UNSUPPORTED_PROTOCOL_VERSION,
        )
    return version, position


def read_connect(buffer: bytes, position: int, end: int, _version: int) -> Connect:
    """Read a CONNECT, whose protocol version is its own."""
    version = _BEGINNINGS.get(buffer[position : min(position + _BEGINNING, end)], 0)
    if version:
        position += _BEGINNING
    else:
        version, position = read_protocol_version(buffer, position, end)
    bridge, version = version & BRIDGE_BIT != 0, version & ~BRIDGE_BIT
    flags, position = read_byte(buffer, position, end, "connect flags")
    _check_flags(flags, version)
    connect = Connect("", version, bool(flags & CLEAN_START), bridge=bridge)
    connect.keep_alive, position = read_two_byte_integer(buffer, position, end, "keep alive")
    connect.properties, position = read_properties(
        buffer, position, end, PacketType.CONNECT, version
    )
    connect.client_id, position = read_string(buffer, position, end, "client identifier")
    if flags & WILL_FLAG:  # [MQTT-3.1.2-9]
        connect.will, position = _read_will(buffer, position, end, flags, version)
    if flags & USER_NAME and not _may_be_missing(position, end, version):  # [MQTT-3.1.2-17]
        connect.username, position = read_string(buffer, position, end, "user name")
    if flags & PASSWORD and not _may_be_missing(position, end, version):  # [MQTT-3.1.2-19]
        connect.password, position = read_binary(buffer, position, end, "password")
    if position != end:
        raise excess_bytes("CONNECT", position, end)
    return connect


def _check_flags(flags: int, version: int) -> None:
    if flags & RESERVED:  # [MQTT-3.1.2-3]
        raise MalformedPacket(f"connect flags 0x{flags:02X}: the reserved bit is set")
    if flags & WILL_FLAG:
        if flags >> WILL_QOS_SHIFT & 3 == 3:  # [MQTT-3.1.2-12]
            raise MalformedPacket("will QoS 3; it must be 0, 1 or 2")
    elif flags & (3 << WILL_QOS_SHIFT | WILL_RETAIN):  # [MQTT-3.1.2-11] [MQTT-3.1.2-13]
        raise MalformedPacket(f"connect flags 0x{flags:02X}: will QoS or retain without a will")
    if version < MQTT_5 and flags & PASSWORD and not flags & USER_NAME:
        # MQTT 3.1.1: [MQTT-3.1.2-22]; MQTT 5 allows it (section 3.1.2.9)
        raise MalformedPacket("a password without a user name")


def _read_will(
    buffer: bytes, position: int, end: int, flags: int, version: int
) -> tuple[Will, int]:
    properties, position = read_properties(buffer, position, end, WILL, version)
    topic, position = read_string(buffer, position, end, "will topic")  # [MQTT-3.1.3-11]
    check_topic_name(topic)
    payload, position = read_binary(buffer, position, end, "will payload")
    qos = flags >> WILL_QOS_SHIFT & 3
    return Will(topic, payload, qos, bool(flags & WILL_RETAIN), properties), position


def _may_be_missing(position: int, end: int, version: int) -> bool:
    """Return whether a flagged user name or password may be missing, as in MQTT 3.1."""
    return version == MQTT_3_1 and position == end


def write_connect(packet: Connect, _version: int) -> bytes:
    """Return a CONNECT of the packet's own protocol version."""
    version = packet.protocol_version
    parts = [
        write_string(PROTOCOL_NAMES[version]),
        write_byte(version | BRIDGE_BIT * packet.bridge),
        write_byte(_flags(packet)),
        write_two_byte_integer(packet.keep_alive),
        write_properties(packet.properties, PacketType.CONNECT, version),
        write_string(packet.client_id),
    ]
    if packet.will:
        parts.append(write_properties(packet.will.properties, WILL, version))
        parts.append(write_string(packet.will.topic))
        parts.append(write_binary(packet.will.payload))
    if packet.username is not None:
        parts.append(write_string(packet.username))
    if packet.password is not None:
        parts.append(write_binary(packet.password))
    return write_packet(FIRST_BYTES[PacketType.CONNECT], *parts)


def _flags(packet: Connect) -> int:
    flags = packet.clean_start * CLEAN_START
    if packet.will:
        flags |= WILL_FLAG | packet.will.qos << WILL_QOS_SHIFT | packet.will.retain * WILL_RETAIN
    if packet.username is not None:
        flags |= USER_NAME
    if packet.password is not None:
        flags |= PASSWORD
    return flags


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
    """Read a CONNACK; a return code of MQTT 3.1.1 becomes the corresponding reason code."""
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

    Before MQTT 5 a reason without a return code of its own is sent as 3, server unavailable: it
    makes the client try again.
    """
    if version == MQTT_5:
        before, after = _around_codes(packet.properties)
        return before + bytes((packet.session_present, packet.reason_code)) + after
    session_present = packet.session_present and version != MQTT_3_1
    code = RETURN_CODES.get(packet.reason_code, RETURN_CODES[ReasonCode.SERVER_UNAVAILABLE])
    return bytes((_FIRST_BYTE, 2, session_present, code))


_last: tuple[Properties, tuple[bytes, bytes]] = (NO_PROPERTIES, (b"\x20\3", b"\0"))


def _around_codes(properties: Properties) -> tuple[bytes, bytes]:
    """Return what precedes flags and reason code, and what follows: the properties.

    They are cached, since most clients get the same as the client before.
    """
    global _last  # noqa: PLW0603 - one pair, replaced as a whole
    if properties is not _last[0]:
        after = write_properties(properties, PacketType.CONNACK, MQTT_5)
        whole = write_packet(_FIRST_BYTE, bytes(_CODES), after)
        _last = properties, (whole[: -_CODES - len(after)], after)
    return _last[1]

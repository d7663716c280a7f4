"""Packets as bytes, put together by hand: nothing here is the gateway's own encoder.

Properties are given without their length, as one string of bytes; before MQTT 5 there are none.
"""

from dataclasses import dataclass

MQTT_3_1 = 3
MQTT_3_1_1 = 4
MQTT_5 = 5

CONNECT = 0x10
CONNACK = 0x20
PUBLISH = 0x30
PUBACK = 0x40
PUBREC = 0x50
PUBREL = 0x62
PUBCOMP = 0x70
SUBSCRIBE = 0x82
SUBACK = 0x90
UNSUBSCRIBE = 0xA2
UNSUBACK = 0xB0
DISCONNECT = 0xE0
AUTH = 0xF0

PINGREQ = b"\xc0\x00"
PINGRESP = b"\xd0\x00"

PAYLOAD_FORMAT_INDICATOR = 0x01
MESSAGE_EXPIRY_INTERVAL = 0x02
CONTENT_TYPE = 0x03
RESPONSE_TOPIC = 0x08
CORRELATION_DATA = 0x09
SUBSCRIPTION_IDENTIFIER = 0x0B
SESSION_EXPIRY_INTERVAL = 0x11
ASSIGNED_CLIENT_IDENTIFIER = 0x12
SERVER_KEEP_ALIVE = 0x13
AUTHENTICATION_METHOD = 0x15
AUTHENTICATION_DATA = 0x16
REQUEST_PROBLEM_INFORMATION = 0x17
WILL_DELAY_INTERVAL = 0x18
REQUEST_RESPONSE_INFORMATION = 0x19
RESPONSE_INFORMATION = 0x1A
SERVER_REFERENCE = 0x1C
REASON_STRING = 0x1F
RECEIVE_MAXIMUM = 0x21
TOPIC_ALIAS_MAXIMUM = 0x22
TOPIC_ALIAS = 0x23
MAXIMUM_QOS = 0x24
RETAIN_AVAILABLE = 0x25
USER_PROPERTY = 0x26
MAXIMUM_PACKET_SIZE = 0x27
WILDCARD_SUBSCRIPTION_AVAILABLE = 0x28
SUBSCRIPTION_IDENTIFIER_AVAILABLE = 0x29
SHARED_SUBSCRIPTION_AVAILABLE = 0x2A

NO_LOCAL = 0x04
RETAIN_AS_PUBLISHED = 0x08
RETAIN_IF_NEW = 0x10
NO_RETAINED = 0x20


def byte(number: int) -> bytes:
    return number.to_bytes(1, "big")


def two(number: int) -> bytes:
    return number.to_bytes(2, "big")


def four(number: int) -> bytes:
    return number.to_bytes(4, "big")


def variable(number: int) -> bytes:
    """Return a variable byte integer in its shortest form."""
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def text(content: str | bytes) -> bytes:
    """Return a string or binary data behind its length."""
    data = content.encode() if isinstance(content, str) else content
    return two(len(data)) + data


def byte_property(identifier: int, value: int) -> bytes:
    return byte(identifier) + byte(value)


def two_property(identifier: int, value: int) -> bytes:
    return byte(identifier) + two(value)


def four_property(identifier: int, value: int) -> bytes:
    return byte(identifier) + four(value)


def text_property(identifier: int, value: str | bytes) -> bytes:
    return byte(identifier) + text(value)


def session_expiry(seconds: int) -> bytes:
    return four_property(SESSION_EXPIRY_INTERVAL, seconds)


def will_delay(seconds: int) -> bytes:
    return four_property(WILL_DELAY_INTERVAL, seconds)


def message_expiry(seconds: int) -> bytes:
    return four_property(MESSAGE_EXPIRY_INTERVAL, seconds)


def user_property(name: str | bytes, value: str | bytes) -> bytes:
    return byte(USER_PROPERTY) + text(name) + text(value)


def subscription_identifier(number: int) -> bytes:
    return byte(SUBSCRIPTION_IDENTIFIER) + variable(number)


def behind_length(properties: bytes) -> bytes:
    """Return properties as they stand in a packet of MQTT 5."""
    return variable(len(properties)) + properties


def packet(first_byte: int, *parts: bytes) -> bytes:
    """Return a packet with the remaining length that its parts have."""
    body = b"".join(parts)
    return byte(first_byte) + variable(len(body)) + body


def _properties(version: int, properties: bytes) -> bytes:
    assert version == MQTT_5 or not properties, "properties before MQTT 5"
    return behind_length(properties) if version == MQTT_5 else b""


@dataclass(frozen=True, slots=True)
class Will:
    """The will in a CONNECT."""

    topic: str
    payload: bytes = b"gone"
    qos: int = 0
    retain: bool = False
    properties: bytes = b""

    @property
    def flags(self) -> int:
        return 0x04 | self.qos << 3 | self.retain << 5

    def fields(self, version: int) -> bytes:
        return _properties(version, self.properties) + text(self.topic) + text(self.payload)


def protocol(version: int) -> bytes:
    """Return the protocol name and version that begin a CONNECT."""
    return text("MQIsdp" if version == MQTT_3_1 else "MQTT") + byte(version)


def connect(
    version: int,
    client_id: str | bytes = "",
    *,
    clean: bool = True,
    keep_alive: int = 0,
    properties: bytes = b"",
    will: Will | None = None,
    username: str | bytes | None = None,
    password: bytes | None = None,
) -> bytes:
    flags = clean << 1 | (username is not None) << 7 | (password is not None) << 6
    parts = [text(client_id)]
    if will is not None:
        flags |= will.flags
        parts.append(will.fields(version))
    parts += [text(field) for field in (username, password) if field is not None]
    return packet(
        CONNECT,
        protocol(version),
        byte(flags),
        two(keep_alive),
        _properties(version, properties),
        *parts,
    )


def publish(
    version: int,
    topic: str | bytes,
    payload: bytes = b"",
    qos: int = 0,
    packet_id: int = 0,
    *,
    retain: bool = False,
    dup: bool = False,
    properties: bytes = b"",
) -> bytes:
    return packet(
        PUBLISH | dup << 3 | qos << 1 | retain,
        text(topic),
        two(packet_id) if qos else b"",
        _properties(version, properties),
        payload,
    )


def acknowledgement(
    first_byte: int, packet_id: int, code: int | None = None, properties: bytes | None = None
) -> bytes:
    """Return a PUBACK, PUBREC, PUBREL or PUBCOMP, with a reason code and properties if given."""
    return packet(
        first_byte,
        two(packet_id),
        b"" if code is None else byte(code),
        b"" if properties is None else behind_length(properties),
    )


def subscribe(
    version: int, packet_id: int, *requests: tuple[str | bytes, int], properties: bytes = b""
) -> bytes:
    """Return a SUBSCRIBE of topic filters with their option bytes."""
    return packet(
        SUBSCRIBE,
        two(packet_id),
        _properties(version, properties),
        *(text(topic_filter) + byte(options) for topic_filter, options in requests),
    )


def suback(version: int, packet_id: int, *codes: int) -> bytes:
    return packet(SUBACK, two(packet_id), _properties(version, b""), bytes(codes))


def unsubscribe(
    version: int, packet_id: int, *topic_filters: str | bytes, properties: bytes = b""
) -> bytes:
    return packet(
        UNSUBSCRIBE,
        two(packet_id),
        _properties(version, properties),
        *(text(topic_filter) for topic_filter in topic_filters),
    )


def unsuback(version: int, packet_id: int, *codes: int) -> bytes:
    """Return an UNSUBACK, whose codes there are only in MQTT 5."""
    return packet(
        UNSUBACK,
        two(packet_id),
        _properties(version, b""),
        bytes(codes) if version == MQTT_5 else b"",
    )


def disconnect(code: int | None = None, properties: bytes | None = None) -> bytes:
    return packet(
        DISCONNECT,
        b"" if code is None else byte(code),
        b"" if properties is None else behind_length(properties),
    )

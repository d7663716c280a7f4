"""What the server's packets say, read without the gateway's own decoder."""

from typing import NamedTuple

from tests.conformance.support import wire

_TEXT = frozenset(
    {
        wire.CONTENT_TYPE,
        wire.RESPONSE_TOPIC,
        wire.CORRELATION_DATA,
        wire.ASSIGNED_CLIENT_IDENTIFIER,
        wire.AUTHENTICATION_METHOD,
        wire.AUTHENTICATION_DATA,
        wire.RESPONSE_INFORMATION,
        wire.SERVER_REFERENCE,
        wire.REASON_STRING,
    }
)
_SIZES = {
    wire.PAYLOAD_FORMAT_INDICATOR: 1,
    wire.REQUEST_PROBLEM_INFORMATION: 1,
    wire.REQUEST_RESPONSE_INFORMATION: 1,
    wire.MAXIMUM_QOS: 1,
    wire.RETAIN_AVAILABLE: 1,
    wire.WILDCARD_SUBSCRIPTION_AVAILABLE: 1,
    wire.SUBSCRIPTION_IDENTIFIER_AVAILABLE: 1,
    wire.SHARED_SUBSCRIPTION_AVAILABLE: 1,
    wire.SERVER_KEEP_ALIVE: 2,
    wire.RECEIVE_MAXIMUM: 2,
    wire.TOPIC_ALIAS_MAXIMUM: 2,
    wire.TOPIC_ALIAS: 2,
    wire.MESSAGE_EXPIRY_INTERVAL: 4,
    wire.SESSION_EXPIRY_INTERVAL: 4,
    wire.WILL_DELAY_INTERVAL: 4,
    wire.MAXIMUM_PACKET_SIZE: 4,
}

Value = int | bytes | tuple[bytes, bytes]
Properties = list[tuple[int, Value]]


class ConnAck(NamedTuple):
    """CONNACK: its flags, its code and its properties by identifier, each there once."""

    flags: int
    code: int
    properties: dict[int, Value]


class Publish(NamedTuple):
    """PUBLISH; the properties are sorted by identifier, and of one identifier in their order."""

    topic: bytes
    payload: bytes
    qos: int
    retain: bool
    dup: bool
    packet_id: int
    properties: Properties


class Disconnect(NamedTuple):
    """DISCONNECT with its code and its properties."""

    code: int
    properties: Properties


def whole_packet(buffer: bytes | bytearray) -> int:
    """Return the length of the packet that the buffer begins with, 0 while it is not whole."""
    for size in range(2, 6):
        if len(buffer) < size:
            return 0
        if buffer[size - 1] < 0x80:
            length, _ = read_variable(bytes(buffer[1:size]))
            return size + length if len(buffer) >= size + length else 0
    raise AssertionError(f"a remaining length of more than four bytes: {buffer[:6].hex(' ')}")


def read_variable(data: bytes) -> tuple[int, bytes]:
    """Return a variable byte integer and what stands behind it."""
    value = 0
    for position, number in enumerate(data):
        value |= (number & 0x7F) << 7 * position
        if number < 0x80:
            assert wire.variable(value) == data[: position + 1], "not in its shortest form"
            return value, data[position + 1 :]
    raise AssertionError(f"no variable byte integer: {data.hex(' ')}")


def _text(data: bytes) -> tuple[bytes, bytes]:
    size = int.from_bytes(data[:2], "big")
    assert len(data) >= 2 + size, f"text cut short: {data.hex(' ')}"
    return data[2 : 2 + size], data[2 + size :]


def _value(identifier: int, data: bytes) -> tuple[Value, bytes]:
    if identifier == wire.USER_PROPERTY:
        name, data = _text(data)
        value, data = _text(data)
        return (name, value), data
    if identifier == wire.SUBSCRIPTION_IDENTIFIER:
        return read_variable(data)
    if identifier in _TEXT:
        return _text(data)
    size = _SIZES[identifier]
    return int.from_bytes(data[:size], "big"), data[size:]


def read_properties(data: bytes) -> tuple[Properties, bytes]:
    """Return the properties at the front of `data`, sorted, and what stands behind them."""
    length, data = read_variable(data)
    fields, behind = data[:length], data[length:]
    assert len(fields) == length, "properties cut short"
    properties: Properties = []
    while fields:
        identifier, fields = fields[0], fields[1:]
        value, fields = _value(identifier, fields)
        properties.append((identifier, value))
    return sorted(properties, key=lambda pair: pair[0]), behind


def body(raw: bytes) -> bytes:
    """Return what stands behind the fixed header."""
    return read_variable(raw[1:])[1]


def _check(raw: bytes, first_byte: int) -> None:
    found = raw[:1] and raw[0] & 0xF0
    assert found == first_byte, f"no packet 0x{first_byte:02X}: {raw.hex(' ') or 'the end'}"


def read_connack(raw: bytes, version: int) -> ConnAck:
    _check(raw, wire.CONNACK)
    flags, code, *_ = fields = body(raw)
    if version < wire.MQTT_5 or len(fields) == 2:  # a refused version gets the old form
        assert len(fields) == 2, raw.hex(" ")
        return ConnAck(flags, code, {})
    properties, behind = read_properties(fields[2:])
    assert not behind, raw.hex(" ")
    found = [identifier for identifier, _ in properties if identifier != wire.USER_PROPERTY]
    assert len(found) == len(set(found)), "a property twice"
    return ConnAck(flags, code, dict(properties))


def read_publish(raw: bytes, version: int) -> Publish:
    _check(raw, wire.PUBLISH)
    first_byte, fields = raw[0], body(raw)
    qos, packet_id = first_byte >> 1 & 3, 0
    topic, fields = _text(fields)
    if qos:
        packet_id, fields = int.from_bytes(fields[:2], "big"), fields[2:]
    properties: Properties = []
    if version == wire.MQTT_5:
        properties, fields = read_properties(fields)
    retain, dup = bool(first_byte & 1), bool(first_byte & 8)
    return Publish(topic, fields, qos, retain, dup, packet_id, properties)


def read_disconnect(raw: bytes) -> Disconnect:
    _check(raw, wire.DISCONNECT)
    code, properties = (body(raw) or b"\x00")[0], body(raw)[1:]
    found, behind = read_properties(properties or b"\x00")
    assert not behind, raw.hex(" ")
    return Disconnect(code, found)

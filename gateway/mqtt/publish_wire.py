"""The bytes of one PUBLISH that nobody else will get (MQTT 5, section 3.3)."""

from struct import Struct

from gateway.mqtt.fields import (
    write_byte,
    write_two_byte_integer,
    write_variable_byte_integer,
)

_SHORT = Struct(">BBH").pack
"""First byte, a remaining length of one byte, the topic name's length."""

_MEDIUM = Struct(">BBBH").pack
"""The same with a remaining length of two bytes."""

_MORE = 0x80


def publish_wire(first_byte: int, topic: str, middle: bytes, payload: bytes) -> bytes:
    """Return the packet; `middle` is what stands between topic name and payload.

    That is the packet identifier, above QoS 0, and in MQTT 5 the properties with their length.
    A `PublishTemplate` costs more, and less for every receiver but the first.
    """
    name = topic.encode()
    length = len(name)
    rest = 2 + length + len(middle) + len(payload)
    if rest < _MORE:
        head = _SHORT(first_byte, rest, length)
    elif rest < _MORE << 7:
        head = _MEDIUM(first_byte, rest & 0x7F | _MORE, rest >> 7, length)
    else:
        head = write_byte(first_byte) + write_variable_byte_integer(rest)
        head += write_two_byte_integer(length)
    return b"".join((head, name, middle, payload))


def append_publish(
    data: bytearray, first_byte: int, topic: str, middle: bytes, payload: bytes
) -> None:
    """Append to `data` what `publish_wire` would return."""
    name = topic.encode()
    length = len(name)
    rest = 2 + length + len(middle) + len(payload)
    data.append(first_byte)
    while rest >= _MORE:
        data.append(rest & 0x7F | _MORE)
        rest >>= 7
    data.append(rest)
    data.append(length >> 8)
    data.append(length & 0xFF)
    data += name
    data += middle
    data += payload

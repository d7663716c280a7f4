"""The data types of a packet: readers at a position, and writers (MQTT 5, sections 1.5 and 2.1).

A reader gets the buffer, the position, the position where the packet ends and the name of the field
(for the error's text). It returns the value and the position after it, and raises MalformedPacket
if the bytes are not a valid value.
"""

from gateway.mqtt.errors import MalformedPacket, ProtocolError
from gateway.mqtt.packets import PacketType

STRING_LIMIT = 0xFFFF
"""The most bytes of a UTF-8 string or of binary data: its length is a two byte integer."""

VARIABLE_BYTE_INTEGER_LIMIT = 268_435_455
"""The largest variable byte integer: four bytes of seven bits (section 1.5.5)."""

SINGLE_BYTES = tuple(bytes((value,)) for value in range(256))
"""Each byte as an object: a lookup is faster than making one."""

_SINGLE_BYTES = SINGLE_BYTES  # compiled, a C name
_LAST_SHIFT = 21


def missing_bytes(name: str, position: int, needed: int, end: int) -> MalformedPacket:
    """Return the error of a field that extends beyond its packet, or its properties."""
    return MalformedPacket(f"{name} needs {needed} bytes, {max(end - position, 0)} are left")


def excess_bytes(packet_name: str, position: int, end: int) -> MalformedPacket:
    """Return the error of a packet that continues after its last field."""
    return MalformedPacket(f"{packet_name} has {end - position} bytes behind its last field")


def read_byte(buffer: bytes, position: int, end: int, name: str) -> tuple[int, int]:
    """Read one byte."""
    if position >= end:
        raise missing_bytes(name, position, 1, end)
    return buffer[position], position + 1


def read_two_byte_integer(buffer: bytes, position: int, end: int, name: str) -> tuple[int, int]:
    """Read a two byte integer, most significant byte first (section 1.5.2)."""
    if position + 2 > end:
        raise missing_bytes(name, position, 2, end)
    return buffer[position] << 8 | buffer[position + 1], position + 2


def read_four_byte_integer(buffer: bytes, position: int, end: int, name: str) -> tuple[int, int]:
    """Read a four byte integer, most significant byte first (section 1.5.3)."""
    if position + 4 > end:
        raise missing_bytes(name, position, 4, end)
    return int.from_bytes(buffer[position : position + 4], "big"), position + 4


def read_variable_byte_integer(
    buffer: bytes, position: int, end: int, name: str
) -> tuple[int, int]:
    """Read a variable byte integer of one to four bytes, in its shortest form (section 1.5.5)."""
    start = position
    value = shift = 0
    while position < end:
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if byte == 0 and shift:  # [MQTT-1.5.5-1]
                raise MalformedPacket(f"{name} {value} takes more bytes than it needs")
            return value, position
        if shift == _LAST_SHIFT:
            raise MalformedPacket(f"{name} is longer than 4 bytes")
        shift += 7
    raise missing_bytes(name, start, position - start + 1, end)


def read_binary(buffer: bytes, position: int, end: int, name: str) -> tuple[bytes, int]:
    """Read binary data of 0 to 65,535 bytes after its two byte length (section 1.5.6)."""
    start = position + 2
    if start > end:
        raise missing_bytes(name, position, 2, end)
    stop = start + (buffer[position] << 8 | buffer[position + 1])
    if stop > end:
        raise missing_bytes(name, start, stop - start, end)
    return buffer[start:stop], stop


def read_string(buffer: bytes, position: int, end: int, name: str) -> tuple[str, int]:
    """Read a UTF-8 string of 0 to 65,535 bytes after its two byte length (section 1.5.4)."""
    start = position + 2
    if start > end:
        raise missing_bytes(name, position, 2, end)
    stop = start + (buffer[position] << 8 | buffer[position + 1])
    if stop > end:
        raise missing_bytes(name, start, stop - start, end)
    return to_text(buffer[start:stop], name), stop


def read_string_pair(
    buffer: bytes, position: int, end: int, name: str
) -> tuple[tuple[str, str], int]:
    """Read two UTF-8 strings, a name and its value (section 1.5.7)."""
    key, position = read_string(buffer, position, end, name)
    value, position = read_string(buffer, position, end, name)  # [MQTT-1.5.7-1]
    return (key, value), position


def read_packet_identifier(buffer: bytes, position: int, end: int) -> tuple[int, int]:
    """Read a packet identifier; raises ProtocolError when it is 0."""
    if position + 2 > end:
        raise missing_bytes("packet identifier", position, 2, end)
    packet_id = buffer[position] << 8 | buffer[position + 1]
    if packet_id == 0:  # [MQTT-2.2.1-3] [MQTT-2.2.1-4]
        raise ProtocolError("packet identifier 0; it must be 1 to 65535")
    return packet_id, position + 2


def to_text(data: bytes, name: str) -> str:
    """Return the text of a UTF-8 string; a byte order mark stays [MQTT-1.5.4-3]."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:  # surrogates too [MQTT-1.5.4-1]
        raise MalformedPacket(
            f"{name} is not UTF-8: {error.reason} at byte {error.start}"
        ) from None
    if "\0" in text:  # [MQTT-1.5.4-2]
        raise MalformedPacket(f"{name} holds U+0000")
    return text


def write_byte(value: int) -> bytes:
    """Return one byte."""
    return value.to_bytes(1, "big")


def write_two_byte_integer(value: int) -> bytes:
    """Return a two byte integer; raises OverflowError outside 0 to 65,535."""
    return value.to_bytes(2, "big")


def write_four_byte_integer(value: int) -> bytes:
    """Return a four byte integer; raises OverflowError outside 0 to 2^32 - 1."""
    return value.to_bytes(4, "big")


def write_variable_byte_integer(value: int) -> bytes:
    """Return the shortest form of `value`; raises ValueError outside 0 to 268,435,455."""
    if 0 <= value <= 0x7F:
        return _SINGLE_BYTES[value]
    if 0x7F < value <= 0x3FFF:
        return _SINGLE_BYTES[value & 0x7F | 0x80] + _SINGLE_BYTES[value >> 7]
    if not 0 <= value <= VARIABLE_BYTE_INTEGER_LIMIT:
        raise ValueError(f"variable byte integer {value}; at most {VARIABLE_BYTE_INTEGER_LIMIT}")
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def write_binary(data: bytes) -> bytes:
    """Return `data` after its length; raises ValueError above 65,535 bytes."""
    if len(data) > STRING_LIMIT:
        raise ValueError(f"{len(data)} bytes in one field; at most {STRING_LIMIT}")
    return len(data).to_bytes(2, "big") + data


def write_string(text: str) -> bytes:
    """Return `text` in UTF-8 after its length; raises ValueError above 65,535 bytes."""
    return write_binary(text.encode())


def write_string_pair(pair: tuple[str, str]) -> bytes:
    """Return the two strings of a user property."""
    name, value = pair
    return write_string(name) + write_string(value)


FIRST_BYTES = {
    packet_type: packet_type << 4
    | (packet_type in (PacketType.PUBREL, PacketType.SUBSCRIBE, PacketType.UNSUBSCRIBE)) << 1
    for packet_type in PacketType
}
"""Each type with its fixed flags; PUBLISH replaces them by its own [MQTT-2.1.3-1]."""


def write_packet(first_byte: int, *parts: bytes) -> bytes:
    """Return a whole packet; raises ValueError for a body of more than 268,435,455 bytes."""
    body = b"".join(parts)
    return first_byte.to_bytes(1, "big") + write_variable_byte_integer(len(body)) + body

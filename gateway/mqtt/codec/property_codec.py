"""Reads and writes the properties of a packet (MQTT 5, section 2.2.2)."""

from typing import Any

from gateway.mqtt.codec.fields import (
    missing_bytes,
    read_variable_byte_integer,
    write_byte,
    write_variable_byte_integer,
)
from gateway.mqtt.codec.property_table import ALLOWED, WILL
from gateway.mqtt.errors import MalformedPacket, ProtocolError
from gateway.mqtt.packets import MQTT_5, PacketType
from gateway.mqtt.properties import NO_PROPERTIES, Properties
from gateway.mqtt.reason_codes import ReasonCode

MAXIMUM_PROPERTIES = 4_096
"""Properties of one packet. A user property may take five bytes: a packet of 4 MiB would hold
830,000 of them, seconds of work and hundreds of megabytes."""


def read_properties(
    buffer: bytes, position: int, end: int, packet: int, version: int
) -> tuple[Properties, int]:
    """Read the properties of a `packet` (a PacketType, or WILL); before MQTT 5 there are none.

    Raises MalformedPacket for an unknown, misplaced or truncated property, ProtocolError for one
    that is repeated or out of its range.
    """
    if version < MQTT_5:
        return NO_PROPERTIES, position
    if position < end and buffer[position] == 0:  # most packets have none
        return NO_PROPERTIES, position + 1
    length, position = read_variable_byte_integer(buffer, position, end, "property length")
    stop = position + length
    if stop > end:
        raise missing_bytes("properties", position, length, end)
    return read_fields(buffer, position, stop, packet), stop


def read_fields(buffer: bytes, position: int, stop: int, packet: int) -> Properties:
    """Read the properties of a `packet` between two positions, as `read_properties`."""
    if position == stop:
        return NO_PROPERTIES
    allowed = ALLOWED[packet]
    values: dict[str, Any] = {}
    remaining = MAXIMUM_PROPERTIES
    while position < stop:
        remaining -= 1
        if remaining < 0:
            raise ProtocolError(
                f"a packet with more than {MAXIMUM_PROPERTIES} properties",
                ReasonCode.QUOTA_EXCEEDED,
            )
        row = allowed.get(buffer[position])
        if row is None:
            raise _misplaced(buffer[position], packet)
        name = row.name
        value, position = row.kind.read(buffer, position + 1, stop, name)
        if row.minimum and value < row.minimum:
            raise ProtocolError(f"{name} {value}; at least {row.minimum}", row.reason_code)
        if name in values and packet not in row.repeated_in:
            raise ProtocolError(f"{name} is there twice")
        if row.repeated_in:
            values.setdefault(name, []).append(value)
        else:
            values[name] = value
    if "authentication_data" in values and "authentication_method" not in values:
        raise ProtocolError("authentication data without an authentication method")
    for name in ("user_properties", "subscription_identifiers"):
        if name in values:
            values[name] = tuple(values[name])
    return Properties(**values)


def _misplaced(identifier: int, packet: int) -> MalformedPacket:
    name = "a will" if packet == WILL else PacketType(packet).name
    return MalformedPacket(f"property 0x{identifier:02X} is unknown, or not one of {name}")


def write_properties(properties: Properties, packet: int, version: int) -> bytes:
    """Return the properties of a `packet` (a PacketType, or WILL) after their length.

    Before MQTT 5 that is nothing. Properties that this packet cannot have are omitted.
    """
    if version < MQTT_5:
        return b""
    if properties is NO_PROPERTIES:
        return b"\0"
    written = write_fields(properties, packet)
    return write_variable_byte_integer(len(written)) + written


def write_fields(properties: Properties, packet: int, without: tuple[str, ...] = ()) -> bytes:
    """Return the properties of a `packet` without their length and without those named."""
    parts = bytearray()
    for identifier, row in ALLOWED[packet].items():
        value = getattr(properties, row.name)
        if value is None or row.name in without:
            continue
        for single in value if row.repeated_in else (value,):
            parts += write_byte(identifier)
            parts += row.kind.write(single)
    return bytes(parts)

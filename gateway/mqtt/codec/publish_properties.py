"""The properties of a PUBLISH as bytes, decoded when somebody asks for them (section 3.3.2.3)."""

from dataclasses import replace
from typing import Final

from gateway.mqtt.codec.fields import (
    missing_bytes,
    read_variable_byte_integer,
    write_four_byte_integer,
    write_two_byte_integer,
    write_variable_byte_integer,
)
from gateway.mqtt.codec.property_codec import read_fields, write_fields
from gateway.mqtt.errors import ProtocolError
from gateway.mqtt.packets import PacketType
from gateway.mqtt.properties import NO_PROPERTIES, Properties

MAXIMUM_CACHED = 256
"""Property blocks that are remembered; when they are so many all are forgotten."""

LARGEST_CACHED = 256
"""Bytes of the largest of them, so that all together take 300 KiB at most."""

_EXPIRY: Final = b"\x02"
_IDENTIFIER: Final = b"\x0b"
_ALIAS: Final = b"\x23"

_PUBLISH = int(PacketType.PUBLISH)
_OF_ONE_CONNECTION = ("message_expiry_interval", "subscription_identifiers", "topic_alias")

# Compiled, these are C names that no other module sees.
_MAXIMUM_CACHED = MAXIMUM_CACHED
_LARGEST_CACHED = LARGEST_CACHED


class PublishProperties:
    """What a publisher says of its messages, which a server forwards unaltered.

    `data` are the fields without topic alias, subscription identifiers and message expiry
    interval: that is `expiry`, in seconds, None without one. The decoded fields are kept of small
    blocks alone, and while a cache has them, since they take many times their bytes.
    """

    __slots__ = ("_fields", "alias", "data", "expiry")

    def __init__(self, data: bytes, fields: Properties) -> None:
        self.data = data
        self.expiry = fields.message_expiry_interval
        self.alias = fields.topic_alias
        self._fields = fields if len(data) <= _LARGEST_CACHED else None

    @property
    def fields(self) -> Properties:
        """All of them, decoded."""
        if self._fields is not None:
            return self._fields
        fields = read_fields(self.data, 0, len(self.data), _PUBLISH)
        return replace(fields, message_expiry_interval=self.expiry)

    def forget_fields(self) -> None:
        """Keep the bytes alone: the messages may wait long, and nobody else has these fields."""
        self._fields = None


NO_PUBLISH_PROPERTIES: Final = PublishProperties(b"", NO_PROPERTIES)
"""Those of every message without properties."""


class PropertyCache:
    """Reads property blocks, and remembers those that come again and again.

    `misses` counts those that had to be read.
    """

    __slots__ = ("_known", "misses")

    def __init__(self) -> None:
        self._known: dict[bytes, PublishProperties] = {}
        self.misses = 0

    def read(self, block: bytes) -> PublishProperties:
        """Return the properties of a PUBLISH, given without their length.

        Raises MalformedPacket or ProtocolError for what a client may not send.
        """
        known = self._known.get(block)
        if known is not None:
            return known
        self.misses += 1
        fields = read_fields(block, 0, len(block), _PUBLISH)
        if fields.subscription_identifiers:  # [MQTT-3.3.4-6]
            raise ProtocolError("PUBLISH from a client with a subscription identifier")
        properties = of_fields(fields)
        if len(block) <= _LARGEST_CACHED:
            if len(self._known) >= _MAXIMUM_CACHED:
                self._forget()
            self._known[block] = properties
        return properties

    def _forget(self) -> None:
        for properties in self._known.values():
            properties.forget_fields()
        self._known.clear()


def of_fields(fields: Properties) -> PublishProperties:
    """Return the same properties with what is forwarded of them as bytes."""
    if fields is NO_PROPERTIES:
        return NO_PUBLISH_PROPERTIES
    return PublishProperties(write_fields(fields, _PUBLISH, without=_OF_ONE_CONNECTION), fields)


def property_block(
    properties: PublishProperties,
    expiry: int | None,
    subscription_identifiers: tuple[int, ...],
    alias: int,
) -> bytes:
    """Return a property block with its length, as it is sent on one connection.

    `expiry` is what is left of the message expiry interval [MQTT-3.3.2-6], `alias` 0 for none.
    """
    data = properties.data
    if expiry is not None:
        data += _EXPIRY + write_four_byte_integer(expiry)
    for identifier in subscription_identifiers:  # [MQTT-3.3.4-3]
        data += _IDENTIFIER + write_variable_byte_integer(identifier)
    if alias:
        data += _ALIAS + write_two_byte_integer(alias)
    return write_variable_byte_integer(len(data)) + data


def block_bounds(buffer: bytes, position: int, end: int) -> tuple[int, int]:
    """Return where the fields behind a property length begin and end; raise MalformedPacket."""
    if position < end and buffer[position] < 0x80:
        length = buffer[position]
        position += 1
    else:
        length, position = read_variable_byte_integer(buffer, position, end, "property length")
    if position + length > end:
        raise missing_bytes("properties", position, length, end)
    return position, position + length

"""The bytes of a PUBLISH to the fleet's broker, without its packet identifier."""

from typing import NamedTuple

from gateway.mqtt.codec.fields import (
    write_byte,
    write_string,
    write_two_byte_integer,
    write_variable_byte_integer,
)
from gateway.mqtt.codec.property_codec import write_fields
from gateway.mqtt.codec.publish import DUP, publish_first_byte
from gateway.mqtt.outbound_aliases import OutboundAliases
from gateway.mqtt.packets import MQTT_5, PacketType
from gateway.mqtt.properties import Properties
from gateway.storage.outbox.outbox_row import OutboxRow
from gateway.uplink.envelope import has_more, remaining_expiry, write_user_properties
from gateway.uplink.settings import UplinkSettings

LONGEST_TOPIC = 65_535
"""Bytes of a topic name (MQTT 5, section 1.5.4)."""

PACKET_IDENTIFIER = 2
"""Bytes of a packet identifier (section 2.2.1)."""

_FIRST_BYTE = publish_first_byte(qos=1, retain=False, dup=False)
_NO_TOPIC = write_string("")
_TOPIC_ALIAS = write_byte(0x23)


class FleetMessage(NamedTuple):
    """A QoS 1 PUBLISH: the bytes before and after its packet identifier, and its size."""

    head: bytes
    tail: bytes
    size: int

    def packet(self, packet_identifier: int, *, dup: bool = False) -> bytes:
        """Return the packet; with `dup` it was sent before [MQTT-3.3.1-1]."""
        head = self.head
        if dup:
            head = write_byte(head[0] | DUP) + head[1:]
        return head + packet_identifier.to_bytes(PACKET_IDENTIFIER, "big") + self.tail


def fleet_message(
    topic: str, payload: bytes, *, retain: bool = False, version: int
) -> FleetMessage:
    """Return a message without properties."""
    properties = b"\0" if version == MQTT_5 else b""
    first_byte = publish_first_byte(qos=1, retain=retain, dup=False)
    return _message(first_byte, write_string(topic), properties, payload)


class FleetMessages:
    """Encodes rows as messages of one connection, with topic aliases.

    With `aliases`, those of the connection, what `of` returns has to be sent there next. What
    `again` returns, as well on this connection, has none.
    """

    def __init__(self, settings: UplinkSettings, aliases: OutboundAliases | None = None) -> None:
        self._prefix = settings.topic("data/").encode()
        self._identity = settings.identity
        self._aliases = aliases

    def fits(self, row: OutboxRow) -> bool:
        """Return whether the topic is no longer than MQTT allows."""
        topic = row.topic
        size = len(topic) if topic.isascii() else len(topic.encode())
        return len(self._prefix) + size <= LONGEST_TOPIC

    def of(self, row: OutboxRow, now: int, *, resent: bool) -> FleetMessage:
        """Return the row's message as it goes up at `now` (ms since 1970); its topic must fit."""
        topic = self._prefix + row.topic.encode()
        topic = len(topic).to_bytes(2, "big") + topic
        alias = b""
        if self._aliases is not None:
            chosen, known = self._aliases.choose(topic)
            if chosen:
                alias = _TOPIC_ALIAS + write_two_byte_integer(chosen)
            if known:
                topic = _NO_TOPIC
        return self._with(topic, alias, row, now, resent=resent)

    def again(self, row: OutboxRow, now: int) -> FleetMessage:
        """Return the message of a row whose packet is resent."""
        return self._with(
            write_string(f"{self._prefix.decode()}{row.topic}"), b"", row, now, resent=True
        )

    def _with(
        self, topic: bytes, alias: bytes, row: OutboxRow, now: int, *, resent: bool
    ) -> FleetMessage:
        fields = alias + write_user_properties(row, identity=self._identity, resent=resent)
        if has_more(row):
            fields = _more_fields(row, now) + fields
        properties = write_variable_byte_integer(len(fields)) + fields
        return _message(_FIRST_BYTE, topic, properties, row.payload)


def _message(first_byte: int, topic: bytes, properties: bytes, payload: bytes) -> FleetMessage:
    tail = properties + payload
    length = len(topic) + PACKET_IDENTIFIER + len(tail)
    head = write_byte(first_byte) + write_variable_byte_integer(length) + topic
    return FleetMessage(head, tail, len(head) + PACKET_IDENTIFIER + len(tail))


def _more_fields(row: OutboxRow, now: int) -> bytes:
    properties = Properties(
        payload_format_indicator=row.payload_format,
        message_expiry_interval=remaining_expiry(row, now),
        content_type=row.content_type,
        response_topic=row.response_topic,
        correlation_data=row.correlation_data,
    )
    return write_fields(properties, PacketType.PUBLISH)

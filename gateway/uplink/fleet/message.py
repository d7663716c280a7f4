"""The bytes of a PUBLISH to the fleet's broker, without its packet identifier."""

from typing import NamedTuple

from gateway.mqtt.aliases.outbound_aliases import OutboundAliases
from gateway.mqtt.codec.fields import (
    write_byte,
    write_string,
    write_two_byte_integer,
    write_variable_byte_integer,
)
from gateway.mqtt.codec.property_codec import write_fields
from gateway.mqtt.codec.publish import DUP, QOS_SHIFT, publish_first_byte
from gateway.mqtt.packets import MQTT_5, PacketType
from gateway.mqtt.properties import Properties
from gateway.storage.outbox.outbox_row import OutboxRow
from gateway.uplink.envelope import has_more, remaining_expiry, write_user_properties
from gateway.uplink.rules.targets import Targets
from gateway.uplink.settings import UplinkSettings

PACKET_IDENTIFIER = 2
"""Bytes of a packet identifier (section 2.2.1)."""

_FIRST_BYTE = publish_first_byte(qos=1, retain=False, dup=False)
_NO_TOPIC = write_string("")
_TOPIC_ALIAS = write_byte(0x23)


class FleetMessage(NamedTuple):
    """A PUBLISH: the bytes before and after its packet identifier, if it has one, and its size."""

    head: bytes
    tail: bytes
    size: int
    qos: int = 1

    def packet(self, packet_identifier: int, *, dup: bool = False) -> bytes:
        """Return the QoS 1 packet; with `dup` it was sent before [MQTT-3.3.1-1]."""
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
    `again` returns, as well on this connection, has none. MQTT 3.1.1 has no properties, so its
    messages are plain: they carry no number. RETAIN is kept where a rule says so and the server
    `retains`.
    """

    __slots__ = ("_aliases", "_bounds", "_identity", "_mqtt_5", "_prefix", "_retains", "_targets")

    def __init__(
        self,
        settings: UplinkSettings,
        aliases: OutboundAliases | None = None,
        *,
        mqtt_5: bool = True,
        retains: bool = True,
    ) -> None:
        prefix = settings.topic("data/")
        self._prefix = prefix.encode()
        self._bounds = settings.topic_bounds
        self._identity = settings.identity
        self._aliases = aliases
        self._mqtt_5 = mqtt_5
        self._retains = retains
        self._targets: Targets | None = None
        if settings.targets:
            self._targets = Targets(settings.targets, settings.gateway_id, prefix)

    def problem(self, row: OutboxRow) -> str:
        """Return why the row cannot go to its topic at the fleet, "" if it can."""
        return self._bounds.problem(self._topic_of(row))

    def of(self, row: OutboxRow, now: int, *, resent: bool) -> FleetMessage:
        """Return the message of a row without `problem` as it goes up at `now` (ms since 1970)."""
        topic = self._topic_of(row)
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
        topic = self._topic_of(row)
        topic = len(topic).to_bytes(2, "big") + topic
        return self._with(topic, b"", row, now, resent=True)

    def _topic_of(self, row: OutboxRow) -> bytes:
        if self._targets is not None:
            return self._targets.of(row)[0]
        return self._prefix + row.topic.encode()

    def _first_byte(self, row: OutboxRow) -> int:
        if self._targets is None:
            return _FIRST_BYTE
        _, retain, qos = self._targets.of(row)
        return publish_first_byte(qos, retain=row.retain and self._retains and retain, dup=False)

    def _with(
        self, topic: bytes, alias: bytes, row: OutboxRow, now: int, resent: bool
    ) -> FleetMessage:
        if not self._mqtt_5:
            return _message(self._first_byte(row), topic, b"", row.payload)
        fields = alias + write_user_properties(row, identity=self._identity, resent=resent)
        if has_more(row):
            fields = _more_fields(row, now) + fields
        properties = write_variable_byte_integer(len(fields)) + fields
        return _message(self._first_byte(row), topic, properties, row.payload)


def _message(first_byte: int, topic: bytes, properties: bytes, payload: bytes) -> FleetMessage:
    tail = properties + payload
    qos = first_byte >> QOS_SHIFT & 1
    identifier = PACKET_IDENTIFIER if qos else 0
    length = len(topic) + identifier + len(tail)
    head = write_byte(first_byte) + write_variable_byte_integer(length) + topic
    return FleetMessage(head, tail, len(head) + identifier + len(tail), qos)


def _more_fields(row: OutboxRow, now: int) -> bytes:
    properties = Properties(
        payload_format_indicator=row.payload_format,
        message_expiry_interval=remaining_expiry(row, now),
        content_type=row.content_type,
        response_topic=row.response_topic,
        correlation_data=row.correlation_data,
    )
    return write_fields(properties, PacketType.PUBLISH)

"""The bytes of a PUBLISH to the fleet's broker, without its packet identifier."""

from gateway.mqtt.aliases.outbound_aliases import OutboundAliases
from gateway.mqtt.codec.fields import (
    SINGLE_BYTES,
    write_byte,
    write_string,
    write_variable_byte_integer,
)
from gateway.mqtt.codec.property_codec import write_fields
from gateway.mqtt.codec.publish import DUP, QOS_SHIFT, publish_first_byte
from gateway.mqtt.packets import MQTT_5, PacketType
from gateway.mqtt.properties import Properties
from gateway.settings.uplink import UplinkSettings
from gateway.storage.outbox.row import OutboxRow
from gateway.uplink.envelope import has_more, remaining_expiry, write_user_properties
from gateway.uplink.rules.targets import Targets, TopicBounds

PACKET_IDENTIFIER = 2
"""Bytes of a packet identifier (section 2.2.1)."""

TWO_BYTES_FROM = 0x80
"""The smallest variable byte integer of two bytes (section 1.5.5)."""

_FIRST_BYTE = publish_first_byte(qos=1, retain=False, dup=False)
_NO_TOPIC = write_string("")
_TOPIC_ALIAS = write_byte(0x23)


class UnsendableTopicError(ValueError):
    """The topic of a row is invalid at the fleet; the text says why."""


class FleetMessage:
    """A PUBLISH: the bytes before and after its packet identifier, if any, and its size."""

    __slots__ = ("head", "qos", "size", "tail")

    def __init__(self, head: bytes, tail: bytes, size: int, qos: int) -> None:
        self.head = head
        self.tail = tail
        self.size = size
        self.qos = qos

    def packet(self, packet_identifier: int, *, dup: bool = False) -> bytes:
        """Return the QoS 1 packet; with `dup` it was sent before [MQTT-3.3.1-1]."""
        head = SINGLE_BYTES[self.head[0] | DUP] + self.head[1:] if dup else self.head
        return head + packet_identifier.to_bytes(PACKET_IDENTIFIER, "big") + self.tail


def fleet_message(
    topic: str, payload: bytes, *, retain: bool = False, version: int
) -> FleetMessage:
    """Return a message without properties."""
    properties = b"\0" if version == MQTT_5 else b""
    first_byte = publish_first_byte(qos=1, retain=retain, dup=False)
    return _message(first_byte, write_string(topic), properties + payload)


class FleetMessages:
    """Encodes rows as messages of one connection, with topic aliases.

    With the connection's `aliases`, the result of `of` must be the next message that is sent there.
    MQTT 3.1.1 has no properties, so its messages are plain, without a number. RETAIN is set if a
    rule says so and the server `retains`.
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
        self._bounds = TopicBounds(settings.maximum_topic_bytes, settings.maximum_topic_levels)
        self._identity = settings.identity
        self._aliases = aliases
        self._mqtt_5 = mqtt_5
        self._retains = retains
        self._targets: Targets | None = None
        if settings.targets:
            self._targets = Targets(settings.targets, settings.gateway_id, prefix)

    def of(
        self,
        row: OutboxRow,
        now: int,
        *,
        resent: bool,
        aliased: bool = True,
        superseded: bool = False,
    ) -> FleetMessage:
        """Return the message of a row as it is sent at `now` (ms since 1970).

        Without `aliased` it has no topic alias, as for a resent packet, and one that is
        `superseded` is not retained. Raises UnsendableTopicError if the row's topic is invalid.
        """
        first_byte = _FIRST_BYTE
        if self._targets is None:
            topic = self._prefix + row.message.topic.encode()
        else:
            topic, retain, qos = self._targets.of(row)
            retain = retain and row.message.retain and self._retains and not superseded
            first_byte = publish_first_byte(qos, retain=retain, dup=False)
        if problem := self._bounds.problem(topic):
            raise UnsendableTopicError(problem)
        topic = len(topic).to_bytes(2, "big") + topic
        if not self._mqtt_5:
            return _message(first_byte, topic, row.message.payload)
        fields = write_user_properties(row, identity=self._identity, resent=resent)
        if aliased and self._aliases is not None:
            chosen, known = self._aliases.choose(topic)
            if chosen:
                fields = _TOPIC_ALIAS + chosen.to_bytes(2, "big") + fields
            if known:
                topic = _NO_TOPIC
        if has_more(row):
            fields = _more_fields(row, now) + fields
        length = len(fields)
        if length < TWO_BYTES_FROM:
            size = SINGLE_BYTES[length]
        else:
            size = write_variable_byte_integer(length)
        return _message(first_byte, topic, size + fields + row.message.payload)


def _message(first_byte: int, topic: bytes, tail: bytes) -> FleetMessage:
    qos = first_byte >> QOS_SHIFT & 1
    identifier = PACKET_IDENTIFIER if qos else 0
    length = len(topic) + identifier + len(tail)
    head = SINGLE_BYTES[first_byte] + write_variable_byte_integer(length) + topic
    return FleetMessage(head, tail, len(head) + identifier + len(tail), qos)


def _more_fields(row: OutboxRow, now: int) -> bytes:
    properties = Properties(
        payload_format_indicator=row.message.payload_format,
        message_expiry_interval=remaining_expiry(row, now),
        content_type=row.message.content_type,
        response_topic=row.message.response_topic,
        correlation_data=row.message.correlation_data,
    )
    return write_fields(properties, PacketType.PUBLISH)

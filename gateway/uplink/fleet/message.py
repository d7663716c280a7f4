"""The bytes of a PUBLISH to the fleet's broker, without its packet identifier."""

from gateway.mqtt.aliases.outbound_aliases import OutboundAliases
from gateway.mqtt.codec.fields import (
    SINGLE_BYTES,
    write_byte,
    write_string,
    write_variable_byte_integer,
)
from gateway.mqtt.codec.property_codec import write_fields
from gateway.mqtt.codec.publish import DUP, QOS_SHIFT, RETAIN, publish_first_byte
from gateway.mqtt.packets import MQTT_5, PacketType
from gateway.mqtt.properties import Properties
from gateway.settings.uplink import UplinkSettings
from gateway.storage.outbox.row import OutboxRow
from gateway.uplink.envelope import has_more, remaining_expiry, write_user_properties
from gateway.uplink.rules.targets import Targets

PACKET_IDENTIFIER = 2
"""Bytes of a packet identifier (section 2.2.1)."""

_NO_TOPIC = write_string("")
_TOPIC_ALIAS = write_byte(0x23)

# Compiled, these are C names.
_SINGLE_BYTES = SINGLE_BYTES
_DUP, _RETAIN, _QOS_SHIFT = DUP, RETAIN, QOS_SHIFT
_PACKET_IDENTIFIER = PACKET_IDENTIFIER


class FleetMessage:
    """A PUBLISH: the bytes before and after its packet identifier, if any, and its size.

    `topic` is in UTF-8, after its length; `tail` are properties and payload.
    """

    __slots__ = ("head", "qos", "size", "tail")

    def __init__(self, first_byte: int, topic: bytes, tail: bytes) -> None:
        self.qos = first_byte >> _QOS_SHIFT & 1
        identifier = _PACKET_IDENTIFIER if self.qos else 0
        length = len(topic) + identifier + len(tail)
        self.head = _SINGLE_BYTES[first_byte] + write_variable_byte_integer(length) + topic
        self.tail = tail
        self.size = len(self.head) + identifier + len(tail)

    def packet(self, packet_identifier: int, dup: bool = False) -> bytes:
        """Return the QoS 1 packet; with `dup` it was sent before [MQTT-3.3.1-1]."""
        head = _SINGLE_BYTES[self.head[0] | _DUP] + self.head[1:] if dup else self.head
        high, low = packet_identifier >> 8, packet_identifier & 0xFF
        return head + _SINGLE_BYTES[high] + _SINGLE_BYTES[low] + self.tail


def fleet_message(
    topic: str, payload: bytes, *, retain: bool = False, version: int
) -> FleetMessage:
    """Return a message without properties."""
    properties = b"\0" if version == MQTT_5 else b""
    first_byte = publish_first_byte(qos=1, retain=retain, dup=False)
    return FleetMessage(first_byte, write_string(topic), properties + payload)


class FleetMessages:
    """Encodes rows as messages of one connection, with topic aliases.

    With the connection's `aliases`, the result of `of` must be the next message that is sent there.
    MQTT 3.1.1 has no properties, so its messages are plain, without a number. RETAIN is set if a
    rule says so and the server `retains`.
    """

    __slots__ = ("_aliases", "_identity", "_mqtt_5", "_retains", "_targets")

    def __init__(
        self,
        settings: UplinkSettings,
        aliases: OutboundAliases | None = None,
        *,
        mqtt_5: bool = True,
        retains: bool = True,
    ) -> None:
        self._identity = settings.identity
        self._aliases = aliases
        self._mqtt_5 = mqtt_5
        self._retains = retains
        self._targets = Targets(settings)

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
        topic, first_byte, retains = self._targets[row.stream, row.message.topic]
        if retains and row.message.retain and self._retains and not superseded:
            first_byte |= _RETAIN
        if not self._mqtt_5:
            return FleetMessage(first_byte, topic, row.message.payload)
        fields = write_user_properties(row, self._identity, resent)
        if aliased and self._aliases is not None:
            alias, known = self._aliases.choose(topic)
            if alias:
                high, low = alias >> 8, alias & 0xFF
                fields = _TOPIC_ALIAS + _SINGLE_BYTES[high] + _SINGLE_BYTES[low] + fields
            if known:
                topic = _NO_TOPIC
        if has_more(row):
            fields = _more_fields(row, now) + fields
        tail = write_variable_byte_integer(len(fields)) + fields + row.message.payload
        return FleetMessage(first_byte, topic, tail)


def _more_fields(row: OutboxRow, now: int) -> bytes:
    properties = Properties(
        payload_format_indicator=row.message.payload_format,
        message_expiry_interval=remaining_expiry(row, now),
        content_type=row.message.content_type,
        response_topic=row.message.response_topic,
        correlation_data=row.message.correlation_data,
    )
    return write_fields(properties, PacketType.PUBLISH)

"""A row of the outbox as the PUBLISH that goes to the fleet's broker."""

from typing import NamedTuple

from paho.mqtt.properties import Properties as PahoProperties

from gateway.mqtt.fields import write_string
from gateway.mqtt.outbound_aliases import OutboundAliases
from gateway.mqtt.packets import MQTT_5, PacketType
from gateway.mqtt.properties import Properties
from gateway.mqtt.property_codec import write_properties
from gateway.storage.outbox_row import OutboxRow
from gateway.uplink.envelope import fleet_topic, remaining_expiry, user_properties
from gateway.uplink.settings import UplinkSettings

LONGEST_TOPIC = 65_535
"""Bytes of a topic name (MQTT 5, section 1.5.4)."""


class PackedProperties(PahoProperties):
    """Properties whose bytes are known: paho asks for nothing but `pack`.

    Its own class takes 50 µs to fill and pack for each message, the gateway's codec a quarter.
    """

    def __init__(self, packed: bytes) -> None:
        object.__setattr__(self, "packed", packed)

    def pack(self) -> bytes:
        """Return the property length and the properties."""
        packed: bytes = object.__getattribute__(self, "packed")
        return packed


class FleetMessage(NamedTuple):
    """What is published; `size` is that of the whole packet in bytes."""

    topic: str
    payload: bytes
    properties: PackedProperties
    size: int
    topic_fits: bool


def fleet_message(
    row: OutboxRow,
    settings: UplinkSettings,
    *,
    resent: bool,
    now: int,
    aliases: OutboundAliases | None = None,
) -> FleetMessage:
    """Return the row's message as it goes up at `now` (ms since 1970).

    With `aliases`, those of the connection, the caller sends it there next. No packet is ever
    sent a second time: what is sent again is made anew, with the aliases of that moment.
    """
    topic = fleet_topic(row, settings)
    fits = len(topic.encode()) <= LONGEST_TOPIC
    alias: int | None = None
    if aliases is not None and fits:
        chosen, known = aliases.choose(write_string(topic))
        alias = chosen or None
        topic = "" if known else topic
    properties = Properties(
        payload_format_indicator=row.payload_format,
        message_expiry_interval=remaining_expiry(row, now),
        content_type=row.content_type,
        response_topic=row.response_topic,
        correlation_data=row.correlation_data,
        topic_alias=alias,
        user_properties=tuple(user_properties(row, settings, resent=resent)),
    )
    packed = write_properties(properties, PacketType.PUBLISH, MQTT_5)
    size = publish_size(topic, packed, row.payload)
    return FleetMessage(topic, row.payload, PackedProperties(packed), size, fits)


def publish_size(topic: str, packed_properties: bytes, payload: bytes) -> int:
    """Return the bytes of a QoS 1 PUBLISH."""
    remaining = 2 + len(topic.encode()) + 2 + len(packed_properties) + len(payload)
    return 1 + _length_of_length(remaining) + remaining


def _length_of_length(remaining: int) -> int:
    """Return the bytes of a variable byte integer: seven bits in each (section 1.5.5)."""
    return max(1, -(-remaining.bit_length() // 7))

"""A message encoded once for each protocol version and shared by all its receivers."""

from gateway.mqtt.encode import PublishTemplate
from gateway.mqtt.fields import write_two_byte_integer
from gateway.mqtt.message import Message
from gateway.mqtt.packets import MQTT_5
from gateway.mqtt.properties import NO_PROPERTIES, Properties
from gateway.mqtt.publish import publish_first_byte
from gateway.mqtt.publish_wire import publish_wire

_NO_FIELDS = b"\0"
"""The properties of a packet that has none (MQTT 5, section 2.2.2)."""


def properties_of(message: Message) -> Properties:
    """Return what a server forwards unaltered: [MQTT-3.3.2-4], -15, -16, -17, -18, -20."""
    if not (
        message.user_properties
        or message.content_type is not None
        or message.payload_format is not None
        or message.message_expiry is not None
        or message.response_topic is not None
        or message.correlation_data is not None
    ):
        return NO_PROPERTIES
    return Properties(
        payload_format_indicator=message.payload_format,
        message_expiry_interval=message.message_expiry,
        content_type=message.content_type,
        response_topic=message.response_topic,
        correlation_data=message.correlation_data,
        user_properties=message.user_properties,
    )


def wire_for_one(
    message: Message,
    version: int,
    qos: int,
    retain: bool,
    dup: bool,
    packet_id: int,
    subscription_identifiers: tuple[int, ...],
    message_expiry_interval: int | None,
) -> bytes:
    """Return what `PublishTemplate.wire` would, and keep nothing for a next receiver."""
    middle = write_two_byte_integer(packet_id) if qos else b""
    if version == MQTT_5:
        if subscription_identifiers or properties_of(message) is not NO_PROPERTIES:
            return (
                Templates(message)
                .template(version)
                .wire(
                    qos, retain, dup, packet_id, subscription_identifiers, message_expiry_interval
                )
            )
        middle += _NO_FIELDS
    return publish_wire(
        publish_first_byte(qos, retain, dup), message.topic, middle, message.payload
    )


class Templates:
    """The encoded forms of one message, made when a receiver of that version needs it."""

    __slots__ = ("_version_3", "_version_5", "message")

    def __init__(self, message: Message) -> None:
        self.message = message
        self._version_3: PublishTemplate | None = None
        self._version_5: PublishTemplate | None = None

    def template(self, version: int) -> PublishTemplate:
        """Return the template for a receiver that speaks this protocol version."""
        message = self.message
        if version == MQTT_5:
            if self._version_5 is None:
                self._version_5 = PublishTemplate(
                    message.topic, message.payload, properties_of(message), version
                )
            return self._version_5
        if self._version_3 is None:
            self._version_3 = PublishTemplate(
                message.topic, message.payload, NO_PROPERTIES, version
            )
        return self._version_3

"""What a client publishes, by PUBLISH or by its will, as the message that everyone shares."""

from gateway.broker.durability_classes import DurabilityClasses
from gateway.broker.instant import Instant
from gateway.mqtt.packets import Publish, Will
from gateway.mqtt.properties import NO_PROPERTIES
from gateway.routing.where.message import Message
from gateway.session.session import Session

UTF_8 = 1
"""The Payload Format Indicator of text (MQTT 5, section 3.3.2.3.2)."""


def make_message(
    classes: DurabilityClasses, session: Session, packet: Publish | Will, instant: Instant
) -> Message:
    """Return the message that this session's client publishes now."""
    properties = packet.properties
    message = Message(
        packet.topic,
        packet.payload,
        packet.qos,
        packet.retain,
        client_id=session.client_id,
        username=session.username,
        received_at=instant.wall,
        arrived=instant.monotonic,
    )
    message.commit_within = classes.commit_within(session.durability_class, packet.topic)
    if properties is not NO_PROPERTIES:
        message.content_type = properties.content_type
        message.response_topic = properties.response_topic
        message.correlation_data = properties.correlation_data
        message.message_expiry = properties.message_expiry_interval
        message.payload_format = properties.payload_format_indicator
        message.user_properties = properties.user_properties
    return message


def is_what_it_says(packet: Publish | Will) -> bool:
    """Return False for a payload that is said to be UTF-8 and is not (section 3.3.2.3.2)."""
    if packet.properties.payload_format_indicator != UTF_8:
        return True
    try:
        packet.payload.decode()
    except UnicodeDecodeError:
        return False
    return True

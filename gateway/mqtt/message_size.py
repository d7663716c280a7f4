"""What keeping a message costs, as the bounds of queues and stores count it."""

from gateway.mqtt.message import Message
from gateway.mqtt.packets import Will
from gateway.mqtt.properties import Properties

MESSAGE_OVERHEAD = 416
"""Bytes of the objects around a message's own bytes (64-bit CPython 3.11 to 3.13)."""

USER_PROPERTY_OVERHEAD = 160
"""Bytes of the objects around one user property: a pair, its place and two strings."""


def message_size(message: Message) -> int:
    """Return the bytes that the message occupies: its own and those of the objects around them.

    Worked out at the first question and kept with the message.
    """
    if not message.size:
        message.size = _size(message.topic, message.payload, message)
    return message.size


def message_bytes(topic: str, payload_size: int) -> int:
    """Return what `message_size` is of a message without properties."""
    return MESSAGE_OVERHEAD + len(topic.encode()) + payload_size


def will_size(will: Will) -> int:
    """Return the bytes that a will occupies until it is published."""
    return _size(will.topic, will.payload, will.properties)


def _size(topic: str, payload: bytes, properties: Message | Properties) -> int:
    size = message_bytes(topic, len(payload))
    size += len(properties.content_type or "") + len(properties.response_topic or "")
    size += len(properties.correlation_data or b"")
    for name, value in properties.user_properties:
        size += USER_PROPERTY_OVERHEAD + len(name) + len(value)
    return size

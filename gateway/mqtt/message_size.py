"""What keeping a message costs, as the bounds of queues and stores count it."""

from gateway.mqtt.packets import Publish, Will

MESSAGE_OVERHEAD = 416
"""Bytes of the objects around a message's own bytes (64-bit CPython 3.11 to 3.13)."""

USER_PROPERTY_OVERHEAD = 160
"""Bytes of the objects around one user property: a pair, its place and two strings."""


def message_size(message: Publish | Will) -> int:
    """Return the bytes that a message occupies until it is published, whose packet is decoded."""
    properties = message.properties
    size = MESSAGE_OVERHEAD + len(message.topic.encode()) + len(message.payload)
    size += len(properties.content_type or "") + len(properties.response_topic or "")
    size += len(properties.correlation_data or b"")
    for name, value in properties.user_properties:
        size += USER_PROPERTY_OVERHEAD + len(name) + len(value)
    return size

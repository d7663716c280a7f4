"""What keeping a message costs, as the bounds of queues and stores count it."""

from gateway.mqtt.message import Message

MESSAGE_OVERHEAD = 416
"""Bytes of the objects around a message's own bytes (64-bit CPython 3.11 to 3.13)."""

USER_PROPERTY_OVERHEAD = 160
"""Bytes of the objects around one user property: a pair, its place and two strings."""


def message_size(message: Message) -> int:
    """Return the bytes that the message occupies: its own and those of the objects around them.

    Worked out at the first question and kept with the message.
    """
    return message.size or _work_out(message)


def _work_out(message: Message) -> int:
    size = MESSAGE_OVERHEAD + len(message.topic.encode()) + len(message.payload)
    size += len(message.content_type or "") + len(message.response_topic or "")
    size += len(message.correlation_data or b"")
    for name, value in message.user_properties:
        size += USER_PROPERTY_OVERHEAD + len(name) + len(value)
    message.size = size
    return size

"""What a delivery takes of the disk, as the bounds of queues count it."""

from gateway.mqtt.message import Message
from gateway.mqtt.message_size import MESSAGE_OVERHEAD, message_size

KEPT_OVERHEAD = 96
"""Bytes of the rows of a delivery and its message beside texts and blobs, their part of half empty
pages included."""

DIFFERENCE = KEPT_OVERHEAD - MESSAGE_OVERHEAD
"""Bytes that a message takes more on disk than in memory."""


def kept_size(message: Message) -> int:
    """Return the bytes of a delivery's row and its message's, which others may share.

    What holds a user property together in memory is counted as if it were written.
    """
    return message_size(message) + DIFFERENCE

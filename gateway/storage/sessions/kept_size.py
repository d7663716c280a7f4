"""What messages take of the disk, as the bounds of queues count it."""

from gateway.mqtt.message_size import MESSAGE_OVERHEAD
from gateway.mqtt.publication import Publication

KEPT_OVERHEAD = 96
"""Bytes of the rows of a delivery and its message beside texts and blobs, their part of half empty
pages included."""

DIFFERENCE = KEPT_OVERHEAD - MESSAGE_OVERHEAD
"""Bytes that a message takes more on disk than in memory."""


def kept_size(publication: Publication, first: int, count: int) -> int:
    """Return the bytes that so many messages, from number `first` on, take of the disk.

    Others may share the row of the messages.
    """
    return publication.size(first, count) + count * DIFFERENCE

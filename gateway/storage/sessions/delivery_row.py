"""A journal's row of undelivered messages of one session."""

from typing import TYPE_CHECKING

from gateway.mqtt.packets import MESSAGE_OVERHEAD
from gateway.mqtt.publication import Publication
from gateway.session.span import Span
from gateway.storage.engine.many_rows import ranges_of

if TYPE_CHECKING:
    from gateway.mqtt.output import Barrier

DISK_OVERHEAD = 96
"""Bytes of the rows of a delivery and its message without texts and blobs, their part of half empty
pages included."""

DIFFERENCE = DISK_OVERHEAD - MESSAGE_OVERHEAD
"""Bytes that a message occupies more on disk than in memory."""

WRITTEN = -1
"""The batch of a row that an earlier run of the gateway wrote, or that was forgotten since."""


class DeliveryRow:
    """All undelivered messages of a publication to one session with one QoS; implements `span.Row`.

    `base` is the sequence number of the first; the row is stored under that of the `last`. All of
    them occupy `disk_bytes`. Bits of `gone` are set for messages that are finished, or have rows of
    their own; `remaining` counts the others. `packet_id` is that of the last message, 0 while it is
    not known to be sent. On disk, with batch `batch`, it covers `written` messages. It is `whole`
    while no other row has a number between its first and its last. `barrier` waits for it while its
    write is deferred.
    """

    __slots__ = (
        "barrier",
        "base",
        "batch",
        "disk_bytes",
        "gone",
        "last",
        "packet_id",
        "publication",
        "qos",
        "released",
        "remaining",
        "retain",
        "subscription_identifiers",
        "topic_filter",
        "whole",
        "written",
    )

    def __init__(self, base: int, span: Span) -> None:
        self.publication = publication = span.publication
        count = publication.packets.count
        self.base = base
        self.last = base + count - 1
        self.disk_bytes = bytes_on_disk(publication, 0, count)
        self.qos = span.qos
        self.retain = span.retain
        self.subscription_identifiers = span.subscription_identifiers
        self.topic_filter = span.topic_filter
        self.remaining = count
        self.gone = 0
        self.packet_id = 0
        self.released = False
        self.batch = 0
        self.written = 0
        self.whole = True
        self.barrier: Barrier | None = None

    def remove(self, first: int, count: int) -> None:
        """Note that messages, from number `first` on, are finished."""
        if self.publication.packets.count > 1:
            self.gone |= ((1 << count) - 1) << first
        self.remaining -= count

    def settle(self) -> None:
        """Release the publisher's answer from waiting for this row."""
        barrier, self.barrier = self.barrier, None
        if barrier is not None:
            barrier.settle()

    def ranges(self) -> list[tuple[int, int]]:
        """Return first number and count of the unfinished messages, in order."""
        left = [number for number in range(self.publication.count) if not self.gone >> number & 1]
        return [(first, last - first + 1) for first, last in ranges_of(left)]

    def remaining_bytes(self) -> int:
        """Return the bytes that the unfinished messages occupy on disk."""
        if not self.gone:
            return self.disk_bytes
        return sum(bytes_on_disk(self.publication, *part) for part in self.ranges())

    def gone_bytes(self) -> bytes | None:
        """Return `gone` as the row's column stores it."""
        if not self.gone:
            return None
        return self.gone.to_bytes((self.publication.count + 7) // 8, "little")

    def spans(self) -> list[Span]:
        """Return its messages as spans, in order."""
        found = []
        for first, count in self.ranges():
            span = Span(
                self.publication,
                first,
                count,
                self.qos,
                self.retain,
                self.subscription_identifiers,
                self.topic_filter,
            )
            self.attach_to(span)
            found.append(span)
        return found

    def attach_to(self, span: Span) -> None:
        """Set the span's row and, if it was sent, its packet identifiers."""
        publication, count = self.publication, self.publication.packets.count
        span.row = self
        part = span.count < count
        span.disk_bytes = (
            bytes_on_disk(publication, span.first, span.count) if part else self.disk_bytes
        )
        if self.packet_id:
            span.packet_id = self.packet_id - count + 1 + span.first


def bytes_on_disk(publication: Publication, first: int, count: int) -> int:
    """Return the bytes that these messages, from number `first` on, occupy on disk.

    Others may share the row of the messages.
    """
    return publication.size(first, count) + count * DIFFERENCE


def gone_bits(data: bytes | None) -> int:
    """Return the bits of a row's column."""
    return 0 if data is None else int.from_bytes(data, "little")

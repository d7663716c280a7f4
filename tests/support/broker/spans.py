"""Spans as a journal keeps them, without a disk."""

from dataclasses import dataclass

from gateway.mqtt.packets import MESSAGE_OVERHEAD
from gateway.session.span import Span
from tests.support.broker.publications import publish

OVERHEAD = 120 - MESSAGE_OVERHEAD
"""Bytes of a message on disk beside those that it takes of memory."""


@dataclass(eq=False)
class Row:
    """A row that has the sequence numbers from `base` on."""

    base: int
    count: int
    batch: int = 0

    @property
    def last(self) -> int:
        return self.base + self.count - 1


def unkept(count: int = 1, qos: int = 1, **fields: object) -> Span:
    """Return a span that is in memory alone."""
    contents = [b"%d" % number * (1 + number % 3) for number in range(count)]
    return Span(publish(contents, qos, **fields), 0, count, qos)


def kept(sequence: int, count: int = 1, batch: int = 1, **fields: object) -> Span:
    """Return a span whose first message has this sequence number."""
    span = unkept(count, **fields)  # type: ignore[arg-type]  # none is its QoS
    keep(span, Row(sequence, count, batch))
    span.publication.stored_for = 1
    return span


def keep(span: Span, row: Row) -> None:
    """Let the row be where the span is kept."""
    span.row = row
    span.disk_bytes = span.publication.size(span.first, span.count) + span.count * OVERHEAD

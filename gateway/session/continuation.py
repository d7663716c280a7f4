"""Continues a session with another connection, or in another run of the gateway."""

from typing import Final

from gateway.session.queue.delivery_queue import DeliveryQueue
from gateway.session.restored import RestoredSpan, StoredTail
from gateway.session.session import Session
from gateway.session.span import Span

NOTHING: Final = StoredTail(0, 0, 0, 0)


def note_departure(session: Session, wall: int) -> None:
    """Store what the session needs to continue with another connection (`wall` is now).

    The packet identifiers of QoS 1 messages are stored here for the first time: while a connection
    lasts, acknowledgements are faster than any write.
    """
    inflight, memory = session.inflight, session.limits.memory
    # storing may give a span a publication of its own, which is counted again below
    inflight.refund(memory)
    for span in inflight.spans():
        if span.qos == 1:
            session.journal.sent(span)
    inflight.charge(memory)
    session.journal.disconnect(wall)


def restore(
    session: Session, stored: list[RestoredSpan], tail: StoredTail | None = None, *, connected: bool
) -> None:
    """Restore what an earlier run stored; without a connection, as after `detach`.

    If the session was `connected` to the end, it is unknown which QoS 1 messages were sent. As many
    as fitted into the window are treated as sent, and so are resent with DUP.
    """
    begun: list[tuple[Span, bool]] = []
    queued: list[Span] = []
    capacity = session.limits.maximum_inflight
    known = [index for index, each in enumerate(stored) if each.span.packet_id]
    # everything before the last known identifier was sent before it
    last_known = known[-1] if known else -1
    for index, each in enumerate(stored):
        span = each.span
        before = index < last_known
        if span.packet_id:
            begun.append((span, each.released))
        # a message that may have been received must carry DUP when it is sent again
        elif connected and span.qos == 1 and (before or (capacity > 0 and not queued)):
            if span.count > capacity and not before:
                span, rest = span.split(capacity)
                queued.append(rest)
            begun.append((span, False))
        else:
            queued.append(span)
            continue
        capacity -= span.count
    _restore_queue(session.queue, queued, tail or NOTHING)
    session.inflight.restore(begun)
    session.inflight.charge(session.limits.memory)


def _restore_queue(queue: DeliveryQueue, read: list[Span], tail: StoredTail) -> None:
    """Restore the queue with its first page, which precedes the tail on disk."""
    messages = tail.messages + sum(each.count for each in read)
    size = tail.bytes + sum(each.disk_bytes for each in read)
    queue.restore_tail(tail.after, tail.up_to, messages, size)
    queue.accept_page(read, complete=False)

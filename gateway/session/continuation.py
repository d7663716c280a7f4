"""How a session goes on with another connection, or in another run of the gateway."""

from typing import Final

from gateway.session.queue.delivery_queue import DeliveryQueue
from gateway.session.restored import RestoredSpan, StoredTail
from gateway.session.session import Session
from gateway.session.span import Span

NOTHING: Final = StoredTail(0, 0, 0, 0)


def note_departure(session: Session, wall: int) -> None:
    """Let the journal know what it needs to go on with another connection (`wall` is now).

    The packet identifiers of QoS 1 messages are noted here for the first time: while they are
    on their way, acknowledgements come faster than anything is written.
    """
    inflight, memory = session.inflight, session.limits.memory
    inflight.refund(memory)  # a span may get a publication of its own
    for span in inflight.spans():
        if span.qos == 1:
            session.journal.sent(span)
    inflight.charge(memory)
    session.journal.disconnect(wall)


def restore(
    session: Session, kept: list[RestoredSpan], tail: StoredTail | None = None, *, connected: bool
) -> None:
    """Take up what an earlier run left; without a connection, as after `detach`.

    If the session was `connected` to the end, it is not known which QoS 1 messages were sent:
    as many as fitted into the window are taken for sent, and so come with DUP.
    """
    begun: list[tuple[Span, bool]] = []
    queued: list[Span] = []
    room = session.limits.maximum_inflight
    known = [index for index, each in enumerate(kept) if each.span.packet_id]
    last_known = known[-1] if known else -1  # what stands before it was sent before it
    for index, each in enumerate(kept):
        span = each.span
        before = index < last_known
        if span.packet_id:
            begun.append((span, each.released))
        elif connected and span.qos == 1 and (before or (room > 0 and not queued)):
            if span.count > room and not before:
                span, rest = span.split(room)
                queued.append(rest)
            begun.append((span, False))
        else:
            queued.append(span)
            continue
        room -= span.count
    _restore_queue(session.queue, queued, tail or NOTHING)
    session.inflight.restore(begun)
    session.inflight.charge(session.limits.memory)


def _restore_queue(queue: DeliveryQueue, read: list[Span], tail: StoredTail) -> None:
    """Let the queue take what was read for its first page, which stands before all the rest."""
    messages = tail.messages + sum(each.count for each in read)
    size = tail.bytes + sum(each.disk_bytes for each in read)
    queue.restore_tail(tail.after, tail.up_to, messages, size)
    queue.accept_page(read, complete=False)

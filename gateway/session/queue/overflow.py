"""How a span comes into a session's queue, and what becomes of what has no room there."""

from typing import TYPE_CHECKING

from gateway.session.limits import WhenFull
from gateway.session.span import Span

if TYPE_CHECKING:
    from gateway.session.session import Session


def must_keep(session: "Session", qos: int) -> bool:
    """Return whether a publisher is to be refused rather than that this session loses a message."""
    return qos > 0 and session.expiry_interval > 0 and session.limits.when_full is WhenFull.REJECT


def enqueue(session: "Session", span: Span, promised: bool) -> None:
    """Queue a span, as far as there is room, or all of it if its publisher was `promised` that."""
    if promised and must_keep(session, span.qos):
        _enqueue(session, span)
        return
    count = session.queue.room(span.publication, span.first, span.count)
    if count == span.count:
        _enqueue(session, span)
        return
    if count:
        head, span = span.split(count)
        _enqueue(session, head)
    for number in range(span.first, span.first + span.count):
        if _makes_room(session, span.qos):
            _enqueue(session, span.part(number, 1))


def _enqueue(session: "Session", span: Span) -> None:
    if span.qos:
        session.journal.enqueue(span, span.qos == 1 and session.comes_soon)
    session.queue.append(span)


def _makes_room(session: "Session", qos: int) -> bool:
    """Give up what has waited longest for a message, if that is the policy.

    Room that others take cannot be made here: for that one is given up for one. Where the oldest
    are on disk alone, they go as soon as they have been read (`drop_oldest`). Returns False, and
    counts that, if it is the message that is given up.
    """
    queue = session.queue
    if session.limits.when_full is WhenFull.DROP_OLDEST and session.persistent:
        drop_oldest(session, 1)
        if not queue.full:
            return True
        if queue.waits_for_page and not queue.memory_full:
            session.page_in()
            return True
    _count_newest(session, qos)
    return False


def drop_oldest(session: "Session", more: int = 0) -> None:
    """Give up what has waited longest until the queue has room for `more` messages.

    That ends where the oldest are on disk alone, and with one if others take the room.
    """
    queue = session.queue
    if session.limits.when_full is not WhenFull.DROP_OLDEST or not session.persistent:
        return
    while queue.over(more) and len(queue) and not queue.waits_for_page:
        oldest = queue.take(1)
        session.journal.done(oldest, oldest.first, 1)
        if oldest.qos:
            _count_given_up(session, "oldest")
        else:
            count_refusal(session)
        if not queue.at_bound_with(more):
            break


def _count_newest(session: "Session", qos: int) -> None:
    """Count what its publisher was told was taken, and what it was not, each by its name."""
    if qos and session.persistent and not must_keep(session, qos):
        _count_given_up(session, "newest")
    else:
        count_refusal(session)


def _count_given_up(session: "Session", which: str) -> None:
    session.counters.add("publish/messages/dropped")
    session.counters.add(f"tidegate/queues/dropped_{which}")


def count_refusal(session: "Session") -> None:
    """Count a message that there was no room for."""
    session.counters.add("publish/messages/dropped")
    if session.queue.memory_full:
        session.counters.add("tidegate/queues/rejected_for_memory")
    else:
        session.counters.add("tidegate/queues/rejected")

"""What becomes of a delivery for which a session's queue has no room."""

from typing import TYPE_CHECKING

from gateway.session.delivery import Delivery
from gateway.session.limits import WhenFull

if TYPE_CHECKING:
    from gateway.session.session import Session


def must_keep(session: "Session", qos: int) -> bool:
    """Return whether a publisher is to be refused rather than that this session loses a message."""
    return qos > 0 and session.persistent and session.limits.when_full is WhenFull.REJECT


def makes_room(session: "Session", delivery: Delivery) -> bool:
    """Give up what has waited longest for a delivery, if that is the policy.

    Room that others take cannot be made here: for that one is given up for one. Where the oldest
    are on disk alone, they go as soon as they have been read (`drop_oldest`). Returns False, and
    counts that, if it is the delivery that is given up.
    """
    queue = session.queue
    if session.limits.when_full is WhenFull.DROP_OLDEST and session.persistent:
        drop_oldest(session, 1)
        if not queue.full:
            return True
        if queue.waits_for_page and not queue.memory_full:
            session.page_in()
            return True
    _count_newest(session, delivery)
    return False


def drop_oldest(session: "Session", more: int = 0) -> None:
    """Give up what has waited longest until the queue has room for `more` deliveries.

    That ends where the oldest are on disk alone, and with one if others take the room.
    """
    queue = session.queue
    if session.limits.when_full is not WhenFull.DROP_OLDEST or not session.persistent:
        return
    while queue.over(more) and len(queue) and not queue.waits_for_page:
        oldest = queue.popleft()
        session.journal.done(oldest)
        if oldest.qos:
            _count_given_up(session, "oldest")
        else:
            count_refusal(session)
        if not queue.at_bound_with(more):
            break


def _count_newest(session: "Session", delivery: Delivery) -> None:
    """Count what its publisher was told was taken, and what it was not, each by its name."""
    if delivery.qos and session.persistent and not must_keep(session, delivery.qos):
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

"""What becomes of a delivery for which a session's queue has no room."""

from typing import TYPE_CHECKING

from gateway.session.delivery_queue import Delivery
from gateway.session.limits import WhenFull

if TYPE_CHECKING:
    from gateway.session.session import Session


def must_keep(session: "Session", qos: int) -> bool:
    """Return whether a publisher is to be refused rather than that this session loses a message."""
    return qos > 0 and session.persistent and session.limits.when_full is WhenFull.REJECT


def replace_oldest(session: "Session", delivery: Delivery) -> bool:
    """Queue the delivery in place of what has waited longest, if that is the policy.

    Room that others take cannot be made here: for that one is given up for one.
    """
    if session.limits.when_full is not WhenFull.DROP_OLDEST or not session.persistent:
        return False
    queue = session.queue
    while len(queue):
        oldest = queue.popleft()
        session.journal.done(oldest)
        count_lost(session, oldest)
        if not queue.at_bound:
            break
    return queue.append(delivery)


def count_lost(session: "Session", delivery: Delivery) -> None:
    """Count what its publisher was told was taken, and what it was not, each by its name."""
    if delivery.qos and session.persistent and not must_keep(session, delivery.qos):
        session.counters.add("publish/messages/dropped")
        session.counters.add("tidegate/queues/dropped")
    else:
        count_refusal(session)


def count_refusal(session: "Session") -> None:
    """Count a message that there was no room for."""
    session.counters.add("publish/messages/dropped")
    if session.limits.memory.full:
        session.counters.add("tidegate/queues/rejected_for_memory")
    else:
        session.counters.add("tidegate/queues/rejected")

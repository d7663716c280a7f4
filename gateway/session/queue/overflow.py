"""Puts spans into a session's queue, and drops or refuses what exceeds its bounds."""

from typing import TYPE_CHECKING

from gateway.session.span import Span
from gateway.settings.when_full import WhenFull

if TYPE_CHECKING:
    from gateway.session.session import Session


def must_hold(session: "Session", qos: int) -> bool:
    """Return whether publishers are refused before this session loses a message."""
    return qos > 0 and session.expiry_interval > 0 and session.limits.when_full is WhenFull.REJECT


def enqueue(session: "Session", span: Span, reserved: bool) -> None:
    """Queue the part of a span that fits, or all of it if `reserved`."""
    if reserved and must_hold(session, span.qos):
        _enqueue(session, span)
        return
    count = session.queue.capacity(span.publication, span.first, span.count)
    if count == span.count:
        _enqueue(session, span)
        return
    if count:
        head, span = span.split(count)
        _enqueue(session, head)
    if session.limits.when_full is not WhenFull.DROP_OLDEST:
        _count_newest(session, span.qos, span.count)
        return
    for number in range(span.first, span.first + span.count):
        if _evict_for(session, span.qos):
            _enqueue(session, span.part(number, 1))


def _enqueue(session: "Session", span: Span) -> None:
    if span.qos:
        session.journal.enqueue(span, span.qos == 1 and session.comes_soon)
    session.queue.append(span)


def _evict_for(session: "Session", qos: int) -> bool:
    """Drop the oldest message for a new one, if that is the policy.

    This cannot free what other sessions occupy, so one message is dropped for each new one. If the
    oldest are only on disk, they are dropped once they are read (`drop_oldest`). Returns False, and
    counts that, if the new message is dropped instead.
    """
    queue = session.queue
    if session.persistent:
        drop_oldest(session, 1)
        if not queue.full:
            return True
        # the new message may be queued: reading the page drops an older one in its place
        if queue.waits_for_page and not queue.memory_full:
            session.page_in()
            return True
    _count_newest(session, qos, 1)
    return False


def drop_oldest(session: "Session", more: int = 0) -> None:
    """Drop the oldest messages until `more` new ones fit.

    Stops where the oldest are only on disk, and after one message if others occupy the memory.
    """
    queue = session.queue
    if session.limits.when_full is not WhenFull.DROP_OLDEST or not session.persistent:
        return
    while queue.over(more) and len(queue) and (queue.held_back or not queue.waits_for_page):
        oldest = queue.remove_oldest()
        session.forget(oldest, oldest.first, 1)
        if oldest.qos:
            _count_dropped(session, "oldest", 1)
        else:
            count_refusal(session)
        # the common bound is reached: dropping more would not free it
        if not queue.at_bound_with(more):
            break


def cut_memory(session: "Session", size: int) -> int:
    """Drop this many bytes that are only in memory, in favour of shorter queues.

    Returns how many bytes were dropped.
    """
    return _cut(session, size, on_disk=False)


def cut_disk(session: "Session", size: int) -> int:
    """Drop this many bytes on disk; return how many are, or will be, dropped.

    What is only on disk is dropped step by step.
    """
    newest = _drops_newest(session)
    if not (newest and session.queue.paged):
        found = _cut(session, size, on_disk=True)
        if found:
            return found

    def count(messages: int) -> None:
        _count_dropped(session, "for_others", messages)

    # rows that are not in memory are deleted by the journal, which reports each step
    session.journal.cut(size, count, newest=newest)
    return min(size, session.queue.paged_bytes)


def _cut(session: "Session", size: int, *, on_disk: bool) -> int:
    """Drop this many bytes in memory; return how many were dropped."""
    newest = _drops_newest(session)
    found = session.queue.cut(size, newest=newest, on_disk=on_disk)
    for span in found:
        session.forget(span, span.first, span.count)
        _count_dropped(session, "for_others", span.count)
    return sum(span.disk_bytes or span.size for span in found)


def _drops_newest(session: "Session") -> bool:
    return session.limits.when_full is not WhenFull.DROP_OLDEST


def _count_newest(session: "Session", qos: int, count: int) -> None:
    """Count the newest messages: as dropped if acknowledged to their publisher, else as refused."""
    if qos and session.persistent and not must_hold(session, qos):
        _count_dropped(session, "newest", count)
    else:
        count_refusal(session, count)


def _count_dropped(session: "Session", which: str, count: int) -> None:
    session.counters.add("publish/messages/dropped", count)
    session.counters.add(f"tidegate/queues/dropped_{which}", count)
    session.limits.memory.note_dropped(session.client_id, count)
    session.note_drop(which, count)


def count_refusal(session: "Session", count: int = 1) -> None:
    """Count messages that did not fit."""
    session.counters.add("publish/messages/dropped", count)
    if session.queue.memory_full:
        session.counters.add("tidegate/queues/rejected_for_memory", count)
        session.note_drop("rejected_for_memory", count)
    else:
        session.counters.add("tidegate/queues/rejected", count)
        session.note_drop("rejected", count)

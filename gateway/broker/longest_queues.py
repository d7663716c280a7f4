"""What the longest queues give up while all queues together have little room left."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from gateway.session.journal import NO_JOURNAL
from gateway.session.limits import WhenFull
from gateway.session.queue import overflow
from gateway.session.queue.bounds import HEAD_BYTES
from gateway.session.session import Session

if TYPE_CHECKING:
    from gateway.broker.broker import Broker

BEGIN, END = 7 / 8, 3 / 4
"""The part of a bound from which on the longest queues are shortened, and down to which."""

AT_ONCE = 16
"""Queues that are shortened in one pass; each gives up half of what it holds at most."""

Cut = Callable[[Session, int], int]


class LongestQueues:
    """Shortens the longest queues, so that others have room.

    The holder whose queues hold most pays: a user, or clients without a user name from one
    address. Of its queues the longest is shortened, at the end that its policy gives up. A queue
    whose policy is to refuse publishers gives up nothing.
    """

    __slots__ = ("_broker",)

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker

    def shorten(self, maximum_memory: int) -> None:
        """Make room in memory and on disk, where they are nearly full."""
        memory = self._broker.queue_memory
        excess = _excess(memory.bytes, maximum_memory)
        if excess > 0:
            self._shorten(excess, _memory_of, overflow.cut_memory)
        excess = _excess(memory.disk_bytes, memory.maximum_disk_bytes)
        if excess > 0:
            self._shorten(excess, _disk_of, overflow.cut_disk)

    def _shorten(self, excess: int, size_of: Callable[[Session], int], cut: Cut) -> None:
        sizes = {each: size_of(each) for each in self._sessions()}
        for _ in range(AT_ONCE):
            held: Counter[str] = Counter()
            for session, size in sizes.items():
                held[self._holder(session)] += size
            if excess <= 0 or not any(held.values()):
                break
            most = max(held, key=held.__getitem__)
            longest = max(
                [each for each in sizes if self._holder(each) == most], key=sizes.__getitem__
            )
            freed = cut(longest, min(excess, (sizes[longest] + 1) // 2))
            excess -= freed
            sizes[longest] = max(0, sizes[longest] - freed) if freed else 0

    def _sessions(self) -> Iterator[Session]:
        for session in (*self._broker.sessions.values(), *self._broker.channels):
            if session.queue.messages and session.limits.when_full is not WhenFull.REJECT:
                yield session

    def _holder(self, session: Session) -> str:
        return session.holder


def _excess(held: int, maximum: int) -> int:
    """Return the bytes to be given up, 0 while there is room enough."""
    return held - int(maximum * END) if held > maximum * BEGIN else 0


def _memory_of(session: Session) -> int:
    """Return about what is in memory alone: of what is on disk, too, there is little."""
    return max(0, session.queue.memory_bytes - (HEAD_BYTES if session.queue.paged else 0))


def _disk_of(session: Session) -> int:
    return 0 if session.journal is NO_JOURNAL else session.queue.bytes

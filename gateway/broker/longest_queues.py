"""What the longest queues give up while all queues together have little room left."""

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from gateway.session.journal import NO_JOURNAL
from gateway.session.queue import overflow
from gateway.session.queue.bounds import HEAD_BYTES
from gateway.session.queue.memory import QueueMemory
from gateway.session.session import Session
from gateway.settings.when_full import WhenFull

BEGIN, END = 7 / 8, 3 / 4
"""The part of a bound from which on the longest queues are shortened, and down to which."""

AT_ONCE = 16
"""Queues that are shortened in one pass; each gives up half of what it holds at most."""

Cut = Callable[[Session, int], int]

Queue = tuple[int, int, Session]
"""What a session holds, below 0, and its place among those that hold as much."""


class LongestQueues:
    """Shortens the longest queues, so that others have room.

    The holder whose queues hold most pays: a user, or clients without a user name from one
    address. Of its queues the longest is shortened, at the end that its policy gives up. A queue
    whose policy is to refuse publishers gives up nothing.
    """

    __slots__ = ("_channels", "_memory", "_sessions")

    def __init__(
        self,
        memory: QueueMemory,
        sessions: Mapping[str, Session],
        channels: Iterable[Session],
    ) -> None:
        self._memory = memory
        self._sessions = sessions
        self._channels = channels

    def shorten(self, maximum_memory: int) -> None:
        """Make room in memory and on disk, where they are nearly full."""
        memory = self._memory
        excess = _excess(memory.bytes, maximum_memory)
        if excess > 0:
            self._shorten(excess, _memory_of, overflow.cut_memory)
        excess = _excess(memory.disk_bytes, memory.maximum_disk_bytes)
        if excess > 0:
            self._shorten(excess, _disk_of, overflow.cut_disk)

    def _shorten(self, excess: int, size_of: Callable[[Session], int], cut: Cut) -> None:
        queues, held = self._by_holder(size_of)
        for _ in range(AT_ONCE):
            most = max(held, key=held.__getitem__, default="")
            if excess <= 0 or not queues.get(most):
                break
            size, order, session = heapq.heappop(queues[most])
            freed = cut(session, min(excess, (1 - size) // 2))
            excess -= freed
            if freed:
                held[most] -= freed
                heapq.heappush(queues[most], (size + freed, order, session))
            else:
                held[most] += size

    def _by_holder(
        self, size_of: Callable[[Session], int]
    ) -> tuple[dict[str, list[Queue]], dict[str, int]]:
        """Return the queues of each holder, the longest first, and what they hold together."""
        queues: dict[str, list[Queue]] = {}
        held: Counter[str] = Counter()
        for order, session in enumerate((*self._sessions.values(), *self._channels)):
            size = size_of(session) if session.queue.messages else 0
            if size and session.limits.when_full is not WhenFull.REJECT:
                queues.setdefault(session.holder, []).append((-size, order, session))
                held[session.holder] += size
        for each in queues.values():
            heapq.heapify(each)
        return queues, held


def _excess(held: int, maximum: int) -> int:
    """Return the bytes to be given up, 0 while there is room enough."""
    return held - int(maximum * END) if held > maximum * BEGIN else 0


def _memory_of(session: Session) -> int:
    """Return about what is in memory alone: of what is on disk, too, there is little."""
    return max(0, session.queue.memory_bytes - (HEAD_BYTES if session.queue.paged else 0))


def _disk_of(session: Session) -> int:
    return 0 if session.journal is NO_JOURNAL else session.queue.bytes

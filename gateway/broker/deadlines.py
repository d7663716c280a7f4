"""Timers: keep alive, connect timeout, delayed wills, session expiry."""

import heapq
import math
from collections.abc import Callable, Hashable
from typing import Any

from gateway.broker.instant import Instant

Action = Callable[[Any, Instant], None]
"""Called with its key, so one action can serve all clients."""

SLACK = 64
"""Cancelled entries that may stay in the heap before it is rebuilt."""

AT_ONCE = 64
"""Actions of one `run`: thousands of wills or sessions may be due in the same moment."""

_KEY, _ACTION = 2, 3


class Deadlines:
    """Actions by the monotonic second at which they are due, at most one for each key.

    A cancelled action leaves an empty entry in the heap. The heap is rebuilt once one entry in five
    is empty, so reconnecting clients cost little more than connected ones.

    `earliest` is a monotonic second before which nothing is due, infinite if nothing ever is; after
    `run` it is that of the next action.
    """

    __slots__ = ("_count", "_entries", "_heap", "earliest")

    def __init__(self) -> None:
        self._heap: list[list[Any]] = []  # entries: second, count, key and action
        self._entries: dict[Hashable, list[Any]] = {}
        self.earliest = math.inf
        self._count = 0  # keeps actions of the same second in the order they were set

    def __len__(self) -> int:
        return len(self._entries)

    def set(self, key: Hashable, due: float, action: Action) -> None:
        """Run `action` at the first `run` at or after `due`, in place of the key's earlier one."""
        self._count += 1
        before = self._entries.get(key)
        entry = self._entries[key] = [due, self._count, key, action]
        heapq.heappush(self._heap, entry)
        self.earliest = min(self.earliest, due)
        if before is not None:
            self._empty(before)

    def set_next(self, key: Hashable, instant: Instant, action: Action) -> None:
        """Run `action` in the next turn, not in the turn of `instant`."""
        self.set(key, math.nextafter(instant.monotonic, math.inf), action)

    def discard(self, key: Hashable) -> None:
        """Cancel the key's action, if it has one."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._empty(entry)

    def run_of(self, key: Hashable, instant: Instant) -> None:
        """Run the key's action if it is due."""
        entry = self._entries.get(key)
        if entry is not None and entry[0] <= instant.monotonic:
            action = entry[_ACTION]
            self.discard(key)
            action(key, instant)

    def run(self, instant: Instant) -> None:
        """Run the actions that are due, AT_ONCE at most.

        The others stay due, as `next_due` shows.
        """
        left = AT_ONCE
        while left and self._heap and self._heap[0][0] <= instant.monotonic:
            _, _, key, action = heapq.heappop(self._heap)
            if action is not None:
                left -= 1
                del self._entries[key]
                action(key, instant)
        next_due = self.next_due
        self.earliest = math.inf if next_due is None else next_due

    @property
    def next_due(self) -> float | None:
        """The monotonic second of the next action; None when there is none."""
        while self._heap and self._heap[0][_ACTION] is None:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def _empty(self, entry: list[Any]) -> None:
        entry[_KEY] = entry[_ACTION] = None
        if len(self._heap) > len(self._entries) * 5 // 4 + SLACK:
            self._heap = [each for each in self._heap if each[_ACTION] is not None]
            heapq.heapify(self._heap)

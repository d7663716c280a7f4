"""What happens later: keep alive, connect timeout, delayed wills, session expiry."""

import heapq
from collections.abc import Callable, Hashable

from gateway.broker.instant import Instant

Action = Callable[[Instant], None]

SLACK = 64
"""Places of given up deadlines that are kept before the heap is looked through."""


class Deadlines:
    """Actions by the monotonic second at which they are due, at most one for each key.

    What is given up leaves its place in the heap, not its action, until half of the places are
    such: clients that come and go in any number cost no more than those that are there.
    """

    __slots__ = ("_actions", "_count", "_heap")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Hashable]] = []
        self._actions: dict[Hashable, tuple[int, Action]] = {}
        self._count = 0  # keeps actions of the same second in the order they were set

    def __len__(self) -> int:
        return len(self._actions)

    def set(self, key: Hashable, due: float, action: Action) -> None:
        """Run `action` at the first `run` at or after `due`, instead of the key's earlier one."""
        self._count += 1
        self._actions[key] = self._count, action
        heapq.heappush(self._heap, (due, self._count, key))
        self._sweep()

    def discard(self, key: Hashable) -> None:
        """Give up the key's action, if it has one."""
        if self._actions.pop(key, None) is not None:
            self._sweep()

    def run(self, instant: Instant) -> None:
        """Run every action that is due."""
        while self._heap and self._heap[0][0] <= instant.monotonic:
            place = heapq.heappop(self._heap)
            if self._counts(place):
                self._actions.pop(place[2])[1](instant)

    @property
    def next_due(self) -> float | None:
        """The monotonic second of the next action; None when there is none."""
        while self._heap and not self._counts(self._heap[0]):
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def _counts(self, place: tuple[float, int, Hashable]) -> bool:
        held = self._actions.get(place[2])
        return held is not None and held[0] == place[1]

    def _sweep(self) -> None:
        if len(self._heap) > 2 * len(self._actions) + SLACK:
            self._heap = [place for place in self._heap if self._counts(place)]
            heapq.heapify(self._heap)

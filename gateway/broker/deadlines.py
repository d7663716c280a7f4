"""What happens later: keep alive, connect timeout, delayed wills, session expiry."""

import heapq
from collections.abc import Callable

from gateway.broker.instant import Instant

Action = Callable[[Instant], None]


class Deadlines:
    """Actions by the monotonic second at which they are due.

    Nothing is ever cancelled: an action looks whether it still applies and otherwise does
    nothing or adds itself again, so that traffic costs no heap operation.
    """

    __slots__ = ("_count", "_heap")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Action]] = []
        self._count = 0  # keeps actions of the same second in the order they were added

    def add(self, due: float, action: Action) -> None:
        """Run `action` at the first `run` at or after `due`."""
        self._count += 1
        heapq.heappush(self._heap, (due, self._count, action))

    def run(self, instant: Instant) -> None:
        """Run every action that is due."""
        while self._heap and self._heap[0][0] <= instant.monotonic:
            heapq.heappop(self._heap)[2](instant)

    @property
    def next_due(self) -> float | None:
        """The monotonic second of the next action; None when there is none."""
        return self._heap[0][0] if self._heap else None

"""The timer of a channel."""

from collections.abc import Callable
from math import inf

from gateway.broker.deadlines import Deadlines
from gateway.broker.instant import Instant


class Alarm:
    """Calls `on_due` at the earliest monotonic second it was set to."""

    __slots__ = ("_deadlines", "_on_due", "second")

    def __init__(self, deadlines: Deadlines, on_due: Callable[[Instant], None]) -> None:
        self._deadlines = deadlines
        self._on_due = on_due
        self.second = inf

    def set(self, second: float) -> None:
        """Call at this second, unless an earlier one is set."""
        if second < self.second:
            self.second = second
            self._deadlines.set(self, second, self._ring)

    def stop(self) -> None:
        """Cancel the call."""
        self._deadlines.discard(self)

    def _ring(self, _key: object, instant: Instant) -> None:
        self.second = inf
        self._on_due(instant)

"""The node's clock: milliseconds since its start, on boards whose ticks wrap and on CPython."""

import time

TYPE_CHECKING = False  # MicroPython has no typing module
if TYPE_CHECKING:
    from typing import Any

_cpython: "Any" = time


def _monotonic_ms() -> int:
    now: int = _cpython.monotonic_ns() // 1000000
    return now


def _difference(later: int, earlier: int) -> int:
    return later - earlier


class Uptime:
    """Counts from its making; asked at least once in six days, it outlives the ticks' wrap."""

    def __init__(self) -> None:
        self._ticks = getattr(time, "ticks_ms", _monotonic_ms)
        self._ticks_difference = getattr(time, "ticks_diff", _difference)
        self._last = self._ticks()
        self._ms = 0

    def ms(self) -> int:
        """Return milliseconds since the start; never goes back."""
        now = self._ticks()
        self._ms += self._ticks_difference(now, self._last)
        self._last = now
        return self._ms

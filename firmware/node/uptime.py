"""The node's clock: milliseconds since its start, on boards whose ticks wrap."""

import time

TYPE_CHECKING = False  # MicroPython has no typing module
if TYPE_CHECKING:
    from typing import Any

_time: "Any" = time  # CPython's has no ticks


class Uptime:
    """Counts from its making; asked at least once in six days, it outlives the ticks' wrap."""

    def __init__(self) -> None:
        self._last = _time.ticks_ms()
        self._ms = 0

    def ms(self) -> int:
        """Return milliseconds since the start; never goes back."""
        now = _time.ticks_ms()
        self._ms += _time.ticks_diff(now, self._last)
        self._last = now
        return self._ms

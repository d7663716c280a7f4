"""When the uplink may be connected: windows in the board's own time."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta, tzinfo
from itertools import takewhile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gateway.uplink.link.cron import Window

CHANGE_SECONDS = 2 * 3600
"""The most by which clocks are put forward or back: local times are looked up so much earlier, and
so much later, than those that are wanted."""


class Schedule:
    """Windows that together say when the link may be up.

    Times are seconds since 1970; `zone` None is the time zone of the board, whatever it is then.
    """

    def __init__(self, windows: Sequence["Window"], zone: tzinfo | None = None) -> None:
        self._windows = windows
        self._zone = zone

    def is_open(self, now: float) -> bool:
        """Return whether a window has begun and not ended."""
        return any(
            start <= now < start + window.seconds
            for window in self._windows
            for start in self._starts(window, now - window.seconds, now)
        )

    def opens(self, now: float) -> float | None:
        """Return when the next window after `now` begins, None if none does within 50 years."""
        firsts = [self._next(window, now) for window in self._windows]
        return min((first for first in firsts if first is not None), default=None)

    def _next(self, window: "Window", now: float) -> float | None:
        first = next((start for start in self._starts(window, now) if start > now), None)
        if first is None:
            return None
        return min(start for start in self._starts(window, now, first) if start > now)

    def _starts(self, window: "Window", begin: float, end: float = float("inf")) -> Iterator[float]:
        """Yield all starts of a window from `begin` to `end` and some around them.

        They are in the order of local time, which goes back when the clocks do.
        """
        local = datetime.fromtimestamp(begin, self._zone).replace(tzinfo=None)
        starts = window.starts(local - timedelta(seconds=CHANGE_SECONDS), self._zone)
        return takewhile(lambda start: start <= end + CHANGE_SECONDS, starts)

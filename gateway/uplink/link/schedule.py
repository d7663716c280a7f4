"""When the uplink may be connected: windows in the board's own time."""

from collections.abc import Sequence
from datetime import date, datetime, timedelta, tzinfo

from gateway.uplink.link.cron import Window

HORIZON_DAYS = 8 * 366
"""Days in which the next window is looked for: 29 February may be eight years away."""


class Schedule:
    """Windows that together say when the link may be up.

    Times are seconds since 1970; `zone` None is the time zone of the board, whatever it is then.
    """

    def __init__(self, windows: Sequence[Window], zone: tzinfo | None = None) -> None:
        self._windows = windows
        self._zone = zone

    def open_until(self, now: float) -> float | None:
        """Return when the window that is open at `now` ends, the last of several; None if closed.

        Another may begin at that moment: ask again then.
        """
        today = self._day(now)
        ends = [
            start + window.seconds
            for window in self._windows
            for offset in (-2, -1, 0, 1)  # a window lasts a day at most; zones shift by one more
            for start in window.starts(today + timedelta(offset), self._zone)
            if start <= now < start + window.seconds
        ]
        return max(ends, default=None)

    def opens(self, now: float) -> float | None:
        """Return when the next window after `now` begins, None if none does within HORIZON_DAYS."""
        today = self._day(now)
        for offset in range(-1, HORIZON_DAYS):
            day = today + timedelta(offset)
            starts = [
                start
                for window in self._windows
                for start in window.starts(day, self._zone)
                if start > now
            ]
            if starts:
                return min(starts)
        return None

    def _day(self, now: float) -> date:
        return datetime.fromtimestamp(now, self._zone).date()

"""When the link may be up: by a schedule, a pause and the day's budget."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta, tzinfo
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from gateway.clock import Clock
from gateway.uplink.link.budget import Metering

if TYPE_CHECKING:
    from gateway.uplink.link.cron import Window


CHANGE_SECONDS = 2 * 3600
"""The largest step of daylight saving: local times are searched from this much earlier to this much
later than requested."""


CHECK_SECONDS = 5.0
"""Seconds between two checks while the link is up, the most by which a window is exceeded."""

LONGEST_WAIT = 60.0
"""Maximum seconds between two checks while the link waits: the board's clock may be set."""


class Schedule:
    """Windows in which the link may be up.

    Times are seconds since 1970; `zone` None is the present time zone of the board.
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

        They are in the order of local time, which goes back at the end of daylight saving.
        """
        local = datetime.fromtimestamp(begin, self._zone).replace(tzinfo=None)
        starts = window.starts(local - timedelta(seconds=CHANGE_SECONDS), self._zone)
        return takewhile(lambda start: start <= end + CHANGE_SECONDS, starts)


class Closed(NamedTuple):
    """Why the link must wait, and the seconds until the next check."""

    text: str
    seconds: float


class LinkPermit:
    """Decides whether the link may be up, before each connection and while it is up."""

    def __init__(self, schedule: Schedule | None, metering: Metering, clock: Clock) -> None:
        self._schedule = schedule
        self._metering = metering
        self._clock = clock

    def closed(self) -> Closed | None:
        """Return why the link may not be up now, None if it may."""
        now = self._clock.wall_ms() / 1000
        if self._metering.spent:
            seconds = self._metering.renewed_in()
            return _closed("the budget of today is used up: waiting", now, now + seconds)
        if self._schedule is None or self._schedule.is_open(now):
            return None
        return _closed("outside of its schedule: waiting", now, self._schedule.opens(now))


def _closed(text: str, now: float, opens: float | None) -> Closed:
    if opens is None:
        return Closed(f"{text} for ever", LONGEST_WAIT)
    until = datetime.fromtimestamp(opens).astimezone()
    return Closed(f"{text} until {until:%Y-%m-%d %H:%M}", min(LONGEST_WAIT, opens - now))


def schedule_of(windows: Sequence[str]) -> Schedule | None:
    """Return the schedule of the checked windows, None without any."""
    if not windows:
        return None
    from gateway.uplink.link.cron import parse_window  # imported only if needed

    return Schedule([parse_window(text) for text in windows])

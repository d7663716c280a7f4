"""Decides whether the link may be up now, by the schedule's windows and the day's budget."""

from datetime import datetime
from typing import NamedTuple

from gateway.clock import Clock
from gateway.uplink.link.metering import Metering
from gateway.uplink.link.schedule import Schedule

LOOK_SECONDS = 5.0
"""Seconds between two checks while the link is up, so a window is overrun by this at most."""

LONGEST_WAIT = 60.0
"""Maximum seconds between two checks while the link waits: the board's clock may be set."""


class Closed(NamedTuple):
    """Why the link has to wait, and the seconds until the next check."""

    text: str
    seconds: float


class LinkPermit:
    """Says whether the link may be up; asked before each connection and while it is up."""

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

"""The daily budget in bytes of an uplink that is paid for by the byte."""

from datetime import datetime, time, timedelta, tzinfo

BACKLOG_SHARE = 0.8
"""The part of the day's budget after which the backlog waits: the rest is for live messages."""


class Budget:
    """`limit` bytes for each day, by the board's own midnight; nothing is carried over.

    `day` is the number of the day that `used` bytes belong to (date.toordinal). Times are seconds
    since 1970; `zone` None is the time zone of the board.
    """

    def __init__(self, limit: int, day: int = 0, used: int = 0, zone: tzinfo | None = None) -> None:
        self.limit = limit
        self.day = day
        self.used = used
        self._zone = zone

    def spend(self, size: int, now: float) -> None:
        """Count bytes sent or received."""
        self._turn_over(now)
        self.used += size

    def spent(self, now: float) -> bool:
        """Return whether today's budget is used up."""
        self._turn_over(now)
        return self.used >= self.limit

    def backlog_spent(self, now: float) -> bool:
        """Return whether the rest of today's budget is reserved for live messages."""
        self._turn_over(now)
        return self.used >= self.limit * BACKLOG_SHARE

    def renewed(self, now: float) -> float:
        """Return when the next day begins."""
        tomorrow = self._local(now).date() + timedelta(1)
        return datetime.combine(tomorrow, time(), self._zone).timestamp()

    def _turn_over(self, now: float) -> None:
        """Start a new day; a clock that was set back does not give the same day a second budget."""
        day = self._local(now).toordinal()
        if day > self.day:
            self.day, self.used = day, 0

    def _local(self, now: float) -> datetime:
        return datetime.fromtimestamp(now, self._zone)

"""The day's budget of bytes: its use, on disk and under $SYS."""

from datetime import datetime, time, timedelta, tzinfo

from gateway.clock import Clock
from gateway.counters import Counters
from gateway.storage.state.uplink_state import UplinkUsage

BACKLOG_SHARE = 0.8
"""The part of the day's budget after which the backlog waits: the rest is for live messages."""


class Budget:
    """`limit` bytes for each day, from the board's own midnight; nothing is carried over.

    `day` is the number of the day of the `used` bytes (date.toordinal). Times are seconds since
    1970; `zone` None is the time zone of the board.
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
        """Start a new day; a clock that was set back does not give a day a second budget."""
        day = self._local(now).toordinal()
        if day > self.day:
            self.day, self.used = day, 0

    def _local(self, now: float) -> datetime:
        return datetime.fromtimestamp(now, self._zone)


class Metering:
    """Counts the bytes of connections in the `budget`; without one it allows everything."""

    def __init__(
        self, budget: Budget | None, usage: UplinkUsage | None, counters: Counters, clock: Clock
    ) -> None:
        self.budget: Budget | None = None
        self._counters = counters
        self._clock = clock
        self._counted = 0  # bytes of the present connection
        self.change(budget, usage)

    def change(self, budget: Budget | None, usage: UplinkUsage | None) -> None:
        """Count in another budget from now on; today's use of the last one counts, too."""
        if self.budget is not None and budget is not None:
            budget.day, budget.used = self.budget.day, self.budget.used
        self.budget, self._usage = budget, usage
        if budget is not None:
            self._counters.set("tidegate/uplink/budget", budget.limit)
            self._note(budget)

    def continue_from(self, before: "Metering") -> None:
        """Count what an earlier link has used of the day."""
        if self.budget is not None and before.budget is not None:
            self.budget.day, self.budget.used = before.budget.day, before.budget.used
            self._note(self.budget)

    def begin(self) -> None:
        """Begin to count a connection."""
        self._counted = 0

    def count(self, carried: int) -> None:
        """Count the present connection's bytes so far."""
        if self.budget is not None:
            self.budget.spend(carried - self._counted, self._now())
            self._counted = carried
            self._note(self.budget)

    @property
    def spent(self) -> bool:
        """Whether nothing more may be sent today."""
        return self.budget is not None and self.budget.spent(self._now())

    @property
    def backlog_spent(self) -> bool:
        """Whether only live messages may be sent today."""
        return self.budget is not None and self.budget.backlog_spent(self._now())

    def renewed_in(self) -> float:
        """Return the seconds until the next day's budget."""
        return 0.0 if self.budget is None else self.budget.renewed(self._now()) - self._now()

    def _note(self, budget: Budget) -> None:
        self._counters.set("tidegate/uplink/budget_used", budget.used)
        if self._usage is not None:
            self._usage.save(budget.day, budget.used)

    def _now(self) -> float:
        return self._clock.wall_ms() / 1000

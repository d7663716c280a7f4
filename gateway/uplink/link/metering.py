"""The day's budget at work: what the uplink used of it, on disk and under $SYS."""

from gateway.clock import Clock
from gateway.counters import Counters
from gateway.storage.state.uplink_usage import UplinkUsage
from gateway.uplink.link.budget import Budget


class Metering:
    """Counts what connections carry against the `budget`; without one it lets everything go."""

    def __init__(
        self, budget: Budget | None, usage: UplinkUsage | None, counters: Counters, clock: Clock
    ) -> None:
        self.budget = budget
        self._usage = usage
        self._counters = counters
        self._clock = clock
        self._counted = 0  # bytes of the present connection
        if budget is not None:
            counters.set("tidegate/uplink/budget", budget.limit)
            self._note(budget)

    def begin(self) -> None:
        """Begin to count a connection from nothing."""
        self._counted = 0

    def count(self, carried: int) -> None:
        """Take in that the present connection has carried so many bytes so far."""
        if self.budget is not None:
            self.budget.spend(carried - self._counted, self._now())
            self._counted = carried
            self._note(self.budget)

    @property
    def spent(self) -> bool:
        """Whether nothing more may go today."""
        return self.budget is not None and self.budget.spent(self._now())

    @property
    def backlog_spent(self) -> bool:
        """Whether only live messages may go today."""
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

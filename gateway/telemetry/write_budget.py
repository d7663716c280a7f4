"""Delays commits so that a gateway writes no more than its daily budget."""

DAY = 86_400.0
"""Seconds."""

AVERAGED_SECONDS = 600.0
"""Seconds over which the write rate is averaged, so that a burst causes no delay."""

SHORTEST_INTERVAL = 0.001
"""Seconds below which an update is skipped: the rate of a very short time is meaningless."""

LEAST_STRETCH = 0.1
"""Minimum part of a `batch(<ms>)` window that is used."""

STRETCH_UP = 1.5
STRETCH_DOWN = 0.9
"""Factors of one step: up within a minute over budget, down over several minutes below it."""

COMFORTABLE = 0.7
"""The part of the budget below which delays shrink again."""


class WriteBudget:
    """Sets `stretch`, the part of its window that a commit waits, from the bytes written.

    `budget` is bytes a day, None for no bound. Without one `stretch` stays 1.0: the class `batch`
    then waits as long as it may, which spares the card. With one it falls while the rate is below
    the budget, so that answers come sooner, and rises to 1.0, never beyond, when the rate is above
    it. `exceeded` means that even this was not enough.
    """

    def __init__(self, budget: int | None) -> None:
        self.budget = budget
        self.stretch = 1.0
        self._last: tuple[float, int] | None = None
        self._rate = 0.0  # bytes a second
        self._seconds = 0.0  # measured so far

    def change(self, budget: int | None) -> None:
        """Use another budget from now on."""
        self.budget = budget
        if budget is None:
            self.stretch = 1.0

    @property
    def bytes_per_day(self) -> int:
        """Bytes a day at the write rate of the last AVERAGED_SECONDS seconds."""
        return int(self._rate * DAY)

    @property
    def exceeded(self) -> bool:
        """Whether the rate is above the budget although commits wait for their whole window."""
        return (
            self.budget is not None
            and self._seconds >= AVERAGED_SECONDS
            and self.stretch >= 1.0
            and self.bytes_per_day > self.budget
        )

    def update(self, now: float, written: int) -> None:
        """Update with the bytes written since the start at `now` (monotonic seconds)."""
        last = self._last
        if last is None:
            self._last = (now, written)
            return
        seconds = now - last[0]
        if seconds < SHORTEST_INTERVAL:
            return
        self._last = (now, written)
        self._seconds += seconds
        # The mean of everything at first, then of the last AVERAGED_SECONDS seconds.
        weight = min(1.0, seconds / min(self._seconds, AVERAGED_SECONDS))
        self._rate += weight * ((written - last[1]) / seconds - self._rate)
        self._adapt()

    def _adapt(self) -> None:
        if self.budget is None:
            return
        rate = self._rate * DAY
        if rate > self.budget:
            self.stretch = min(1.0, self.stretch * STRETCH_UP)
        elif rate < COMFORTABLE * self.budget:
            self.stretch = max(LEAST_STRETCH, self.stretch * STRETCH_DOWN)

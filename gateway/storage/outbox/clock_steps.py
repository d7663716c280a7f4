"""What time it is for a row: a board without a clock of its own finds the time after its start."""

from collections.abc import Iterable
from itertools import pairwise

STEP_MS = 1_000
"""Milliseconds by which the wall clock must leave the monotonic one within a look for a step."""

LOOK_MS = 10_000
"""Milliseconds between two looks, at most; a later time may be that of a step nobody knows yet."""

MAX_STEPS = 16
"""Steps that are told apart; of more the oldest are taken for one."""

NOTE = (
    "INSERT INTO outbox_steps (last_id, step) SELECT coalesce(max(id), 0), ? FROM outbox WHERE true"
    " ON CONFLICT (last_id) DO UPDATE SET step = step + excluded.step"
)
"""Notes by how many ms the clock was set forward, or back, since all rows on disk came."""

NEWEST = (
    "SELECT time + coalesce((SELECT sum(step) FROM outbox_steps WHERE last_id >= id), 0)"
    " FROM outbox ORDER BY id DESC LIMIT 1"
)
"""By the clock as it is set now, when the newest row came (ms since 1970)."""

NOTED = "SELECT last_id, step FROM outbox_steps ORDER BY last_id"
FORGET = "DELETE FROM outbox_steps"
INSERT = "INSERT INTO outbox_steps (last_id, step) VALUES (?, ?)"

WITHOUT_END = 2**62


class ClockSteps:
    """Steps of the wall clock, and which rows were accepted before each.

    A row that was accepted before a step has a time that the step made wrong, and would expire
    as much too early: for such a row it is as late as if the clock had gone on. Of earlier runs
    the steps are known, from `restore`.
    """

    def __init__(self) -> None:
        self._wall: int | None = None
        self._offset: float | None = None
        self._steps: list[tuple[int, int]] = []

    def restore(self, noted: Iterable[tuple[int, int]], last_id: int) -> list[tuple[int, int]]:
        """Learn of the steps that an earlier run noted; return those that are worth keeping.

        Rows have ids up to `last_id`; those that come will have higher ones.
        """
        for up_to, step in noted:
            self._add(min(up_to, last_id), step)
        return self._steps

    def look(self, wall: int, monotonic: float, last_id: int) -> None:
        """Compare the clocks (ms since 1970, seconds); `last_id` is the id given last."""
        self._wall = wall
        offset = wall - 1000 * monotonic
        step = 0 if self._offset is None else round(offset - self._offset)
        if self._offset is None or abs(step) >= STEP_MS:
            self._offset = offset
        if abs(step) < STEP_MS:
            return
        self._add(last_id, step)

    def trusts(self, now: int) -> bool:
        """Return whether no step can have made this time since the last look."""
        return self._wall is None or now - self._wall <= LOOK_MS

    def now_for(self, identifier: int, now: int) -> int:
        """Return what `now` (ms since 1970) is for the row of this id."""
        return now - self.after(identifier)

    def after(self, identifier: int) -> int:
        """Return by how many ms the clock was set forward since the row of this id came."""
        if not self._steps:  # as mostly: this is asked of each message
            return 0
        return sum(step for last_id, step in self._steps if identifier <= last_id)

    def spans(self, now: int) -> list[tuple[int, int, int]]:
        """Return (id before the first, last id, now) of rows for which it is the same time."""
        if not self._steps:
            return [(-1, WITHOUT_END, now)]
        edges = [-1, *(last_id for last_id, _ in self._steps), WITHOUT_END]
        return [
            (after_id, up_to, self.now_for(up_to, now))
            for after_id, up_to in pairwise(edges)
            if after_id < up_to
        ]

    def _add(self, last_id: int, step: int) -> None:
        if self._steps and self._steps[-1][0] == last_id:
            step += self._steps.pop()[1]
        self._steps.append((last_id, step))
        if len(self._steps) > MAX_STEPS:
            (_, first), (up_to, second) = self._steps[:2]
            self._steps[:2] = [(up_to, first + second)]

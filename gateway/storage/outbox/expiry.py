"""Ends rows of the outbox that have waited too long, by message expiry or by a maximum age.

A board without a battery-backed clock learns the time after its start: `ClockSteps` returns the
present time as it applies to a row from before.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from gateway.settings.outbox import Mode
from gateway.storage.engine.database import Database
from gateway.storage.outbox.bounds import OutboxBounds, StreamSettings
from gateway.storage.outbox.reader import OutboxReader
from gateway.storage.outbox.row import RECALL, OutboxRow, has_expired

SWEEP_ROWS = 256
"""Rows that one `sweep` ends for their expiry, and as many for their age."""

STEP_MS = 1_000
"""Milliseconds by which the clocks differ between two checks after a step."""

CHECK_MS = 10_000
"""The most milliseconds between two checks; a later time may be that of an unknown step."""

MAX_STEPS = 16
"""Steps that are stored separately; beyond that the oldest are joined."""

NOTED = "SELECT last_id, step FROM outbox_steps ORDER BY last_id"
FORGET = "DELETE FROM outbox_steps"
INSERT = "INSERT INTO outbox_steps (last_id, step) VALUES (?, ?)"

WITHOUT_END = 2**62


class ClockSteps:
    """Steps of the wall clock, and which rows were accepted before each.

    A row that was accepted before a step has a wrong time, and would expire too early by that step.
    For such a row the time counts as if the clock had not been set. Steps of earlier runs come from
    `restore`. Usually there are no `steps`.
    """

    def __init__(self) -> None:
        self._wall: int | None = None
        self._offset: float | None = None
        self.steps: list[tuple[int, int]] = []

    def restore(self, noted: Iterable[tuple[int, int]], last_id: int) -> list[tuple[int, int]]:
        """Load the steps that an earlier run noted; return those that stay stored.

        Existing rows have ids up to `last_id`; new ones will have higher ids.
        """
        for up_to, step in noted:
            self._add(min(up_to, last_id), step)
        return self.steps

    def check(self, wall: int, monotonic: float, last_id: int) -> None:
        """Compare the clocks (ms since 1970, seconds); `last_id` is the newest id."""
        self._wall = wall
        offset = wall - 1000 * monotonic
        step = 0 if self._offset is None else round(offset - self._offset)
        if self._offset is None or abs(step) >= STEP_MS:
            self._offset = offset
        if abs(step) < STEP_MS:
            return
        self._add(last_id, step)

    def trusts(self, now: int) -> bool:
        """Return whether no step since the last check can have caused this time."""
        return self._wall is None or now - self._wall <= CHECK_MS

    def now_for(self, identifier: int, now: int) -> int:
        """Return the time that `now` (ms since 1970) is for the row of this id."""
        return now - self.after(identifier)

    def after(self, identifier: int) -> int:
        """Return by how many ms the clock was set forward since the row of this id."""
        return sum(step for last_id, step in self.steps if identifier <= last_id)

    def spans(self, now: int) -> list[tuple[int, int, int]]:
        """Return (id before the first, last id, now) of rows with the same present time."""
        if not self.steps:
            return [(-1, WITHOUT_END, now)]
        edges = [-1, *(last_id for last_id, _ in self.steps), WITHOUT_END]
        return [
            (after_id, up_to, self.now_for(up_to, now))
            for after_id, up_to in pairwise(edges)
            if after_id < up_to
        ]

    def _add(self, last_id: int, step: int) -> None:
        # set twice without a row between: a single step
        if self.steps and self.steps[-1][0] == last_id:
            step += self.steps.pop()[1]
        self.steps.append((last_id, step))
        if len(self.steps) > MAX_STEPS:
            (_, first), (up_to, second) = self.steps[:2]
            self.steps[:2] = [(up_to, first + second)]


class OutboxExpiry:
    """Ends rows with `end(rows, reason)`, each by its own present time (`ClockSteps`).

    A row that is being sent to the fleet is skipped.
    """

    def __init__(
        self,
        reader: OutboxReader,
        bounds: OutboxBounds,
        end: Callable[[Sequence[OutboxRow], str], None],
    ) -> None:
        self.clock = ClockSteps()
        self._reader = reader
        self._bounds = bounds
        self._end = end

    async def load(self, database: Database, last_id: int) -> None:
        """Load the clock's steps since the rows of earlier runs, up to this id."""
        noted = await database.reader.query(NOTED, (), lambda cursor: cursor.fetchall())
        known = self.clock.restore(noted, last_id) if last_id else []
        if noted and known != noted:
            await database.writer.write([(FORGET, [()]), (INSERT, known)])

    def has_passed(self, row: OutboxRow, now: int) -> bool:
        """Return whether the message expiry of `row` has surely passed at `now` (ms)."""
        clock = self.clock
        return clock.trusts(now) and has_expired(row, clock.now_for(row.id, now))

    async def sweep(self, now: int, monotonic: float) -> bool:
        """End what has waited too long at `now` (ms), up to a bound.

        Return if the bound was reached.

        `monotonic` (seconds) distinguishes a step of the clock from time that has passed. Raises
        sqlite3.Error.
        """
        clock, is_claimed = self.clock, self._reader.is_claimed
        clock.check(now, monotonic, self._bounds.last_id)
        more = False
        for after_id, up_to, then in clock.spans(now):
            rows = await self._reader.expired(then, SWEEP_ROWS, after_id, up_to)
            self._end([row for row in rows if not is_claimed(row.id)], "")
            more = more or len(rows) == SWEEP_ROWS
        ended = 0
        while ended < SWEEP_ROWS:
            oldest = self._bounds.too_old(lambda row: clock.now_for(row.id, now))
            if oldest is None:
                break
            self._end([oldest], "maximum_age")
            ended += 1
        return more or ended == SWEEP_ROWS


def expiry_of(row: OutboxRow, settings: StreamSettings) -> int | None:
    """Return the seconds of message expiry that a row of this stream has."""
    if settings.mode is not Mode.EXPIRE or row.lane == RECALL:
        return row.message_expiry
    if row.message_expiry is None:
        return settings.expire_after
    return min(row.message_expiry, settings.expire_after)

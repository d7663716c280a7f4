"""What of the outbox has waited for too long: by its message expiry, or by a maximum age."""

from collections.abc import Callable, Sequence

from gateway.storage.engine.database import Database
from gateway.storage.outbox.clock_steps import FORGET, INSERT, NOTED, ClockSteps
from gateway.storage.outbox.fetched_rows import FetchedRows
from gateway.storage.outbox.lane import RECALL
from gateway.storage.outbox.outbox_row import OutboxRow, has_expired
from gateway.storage.outbox.reader import OutboxReader
from gateway.storage.outbox.streams.retention import Mode, StreamSettings
from gateway.storage.outbox.streams.streams import OutboxStreams

SWEEP_ROWS = 256
"""Rows that one `sweep` ends for their expiry, and as many for their age."""


class OutboxExpiry:
    """Ends rows with `end(rows, reason)`, each by the time that it is for it (`ClockSteps`).

    A row that is on its way to the fleet is left alone.
    """

    def __init__(
        self,
        reader: OutboxReader,
        streams: OutboxStreams,
        fetched: FetchedRows,
        end: Callable[[Sequence[OutboxRow], str], None],
    ) -> None:
        self._reader = reader
        self._streams = streams
        self._is_taken = fetched.is_taken
        self._end = end
        self._steps = ClockSteps()

    async def load(self, database: Database, last_id: int) -> None:
        """Learn how often the clock was set since the rows of earlier runs came, up to this id."""
        noted = await database.reader.query(NOTED, (), lambda cursor: cursor.fetchall())
        kept = self._steps.restore(noted, last_id) if last_id else []
        if noted and kept != noted:
            await database.writer.write([(FORGET, [()]), (INSERT, kept)])

    def stepped(self, row: OutboxRow) -> int:
        """Return by how many ms the clock was set forward since the row came."""
        return self._steps.after(row.id)

    def has_passed(self, row: OutboxRow, now: int) -> bool:
        """Return whether the message expiry of `row` has surely passed at `now` (ms)."""
        return self._steps.trusts(now) and has_expired(row, self._steps.now_for(row.id, now))

    async def sweep(self, now: int, monotonic: float, last_id: int) -> bool:
        """End what has waited for too long by `now` (ms), a bounded number; return if it was met.

        `monotonic` (seconds) tells a step of the clock from time that has passed; `last_id` is the
        id that was given last. Raises sqlite3.Error.
        """
        self._steps.look(now, monotonic, last_id)
        more = False
        for after_id, up_to, then in self._steps.spans(now):
            rows = await self._reader.expired(then, SWEEP_ROWS, after_id, up_to)
            self._end([row for row in rows if not self._is_taken(row.id)], "")
            more = more or len(rows) == SWEEP_ROWS
        ended = 0
        while ended < SWEEP_ROWS and (oldest := self._too_old(now)) is not None:
            self._end([oldest], "maximum_age")
            ended += 1
        return more or ended == SWEEP_ROWS

    def _too_old(self, now: int) -> OutboxRow | None:
        return self._streams.too_old(lambda row: self._steps.now_for(row.id, now))


def expiry_of(row: OutboxRow, settings: StreamSettings) -> int | None:
    """Return the seconds of message expiry that a row of this stream has."""
    if settings.mode is not Mode.EXPIRE or row.lane == RECALL:
        return row.message_expiry
    if row.message_expiry is None:
        return settings.expire_after
    return min(row.message_expiry, settings.expire_after)

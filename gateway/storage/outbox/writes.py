"""Which rows of the outbox are written, and when: those that the fleet takes in time never are."""

import math
from collections.abc import Sequence

from gateway.mqtt.output import Barrier
from gateway.storage.engine.gathering import Gathering
from gateway.storage.engine.many_rows import insert_statement
from gateway.storage.engine.ranges import ranges_of
from gateway.storage.engine.writer import Writer
from gateway.storage.outbox.batches import OutboxBatches
from gateway.storage.outbox.deferred_rows import DeferredRows
from gateway.storage.outbox.fetched_rows import FetchedRows
from gateway.storage.outbox.figures import OutboxFigures
from gateway.storage.outbox.lane import LIVE
from gateway.storage.outbox.live_way import LiveWay
from gateway.storage.outbox.outbox_row import COLUMNS, OutboxRow, to_columns
from gateway.storage.outbox.outcome import Outcome
from gateway.storage.outbox.reader import OutboxReader
from gateway.storage.outbox.recent_rows import RecentRows

_INSERT = insert_statement("outbox", (*COLUMNS, "indexed"))
_DELETE = "DELETE FROM outbox WHERE id BETWEEN ? AND ?"


class OutboxWrites:
    """Gathers rows and their deletions.

    `fleet_delay` is how many seconds the fleet's last PUBACK took, and infinite after a row had to
    be written since none came: then rows are written at once until one comes in time.
    """

    def __init__(
        self,
        writer: Writer,
        reader: OutboxReader,
        recent: RecentRows,
        batches: OutboxBatches,
        fetched: FetchedRows,
        figures: OutboxFigures,
        gathering: Gathering | None,
    ) -> None:
        self.fleet_delay = 0.0
        self._live_way: LiveWay | None = None
        self._writer = writer
        self._reader = reader
        self._recent = recent
        self._batches = batches
        self._fetched = fetched
        self._figures = figures
        self._gathering = gathering
        self._deferred = DeferredRows(writer, self._write, self._note_late)

    def begin_live(self, live_way: LiveWay) -> None:
        """Give live rows to `live_way` as they are added."""
        self._live_way, self.fleet_delay = live_way, 0.0

    def end_live(self) -> None:
        """Give it no more, and have written what the fleet has not acknowledged."""
        self._live_way = None
        self._deferred.write()

    def add(
        self, row: OutboxRow, within: float | None, wait: float, barrier: Barrier | None
    ) -> None:
        """Write a row, or put that off (`Outbox.add`), and give it to the uplink."""
        live_way = self._live_way if row.lane == LIVE else None
        if live_way is not None and not live_way.takes(row):
            live_way = None
        if live_way is not None and self.fleet_delay < wait and live_way.is_free:
            self._defer(row, wait, barrier)
        else:
            self._write(row, within)
        if live_way is not None:
            self._fetched.known([row])
            live_way.send(row)

    def remove(self, rows: Sequence[OutboxRow], outcome: Outcome, within: float) -> None:
        """Delete rows, those that are not written by never writing them.

        Where the fleet has a message, what waits for that goes on; in all other cases it waits for
        the commit that says how the message ended.
        """
        written = set()
        for row in rows:
            self._recent.remove(row.id)
            if row.barrier is not None and outcome is Outcome.DELIVERED:
                row.barrier.settle()
            if not self._deferred.discard(row.id):
                written.add(row.id)
        if unwritten := len(rows) - len(written):
            if outcome is Outcome.DELIVERED:
                self._figures.unwritten(unwritten)
            else:
                self._writer.schedule_commit(0.0)
        if written:
            self._delete(written, outcome, within)

    def _delete(self, identifiers: set[int], outcome: Outcome, within: float) -> None:
        for each in ranges_of(identifiers):
            self._writer.add(_DELETE, each, within)
        batch = self._writer.batch
        ended = outcome in (Outcome.DELIVERED, Outcome.REJECTED)
        self._batches.remove(batch, len(identifiers) if ended else 0)
        self._reader.leave(identifiers, batch)

    def _defer(self, row: OutboxRow, wait: float, barrier: Barrier | None) -> None:
        if barrier is not None and self._gathering is not None:
            row.barrier = barrier
            barrier.add()
            self._gathering.defer_to_batch()
        self._deferred.add(row, wait)

    def _note_late(self) -> None:
        self.fleet_delay = math.inf

    def _write(self, row: OutboxRow, within: float | None = 0.0) -> None:
        values = to_columns(row)
        batch = self._writer.add(_INSERT, (*values, self._reader.indexed), within)
        self._recent.add(row.id, row.size, values)
        self._batches.add(batch, row.id)

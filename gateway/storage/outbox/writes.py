"""Which rows of the outbox are written, and when: those that the fleet takes in time never are."""

import math
from collections.abc import Sequence

from gateway.mqtt.output import Barrier
from gateway.storage.engine.many_rows import insert_statement
from gateway.storage.engine.pending_batch import PendingBatch
from gateway.storage.engine.ranges import ranges_of
from gateway.storage.engine.writer import Writer
from gateway.storage.outbox.batches import OutboxBatches
from gateway.storage.outbox.deferred_rows import DeferredRows
from gateway.storage.outbox.fetched_rows import FetchedRows
from gateway.storage.outbox.figures import OutboxFigures
from gateway.storage.outbox.group_commit import GroupCommit
from gateway.storage.outbox.lane import LIVE
from gateway.storage.outbox.live_way import Live, LiveWay
from gateway.storage.outbox.outbox_row import COLUMNS, OutboxRow, to_columns
from gateway.storage.outbox.outcome import Outcome
from gateway.storage.outbox.reader import OutboxReader
from gateway.storage.outbox.recent_rows import RecentRows
from gateway.storage.outbox.uplink_bits import UplinkBits

_INSERT = insert_statement("outbox", (*COLUMNS, "indexed", "uplinks"))
_CHANGE = "UPDATE outbox SET uplinks = ? WHERE id BETWEEN ? AND ?"
_DELETE = "DELETE FROM outbox WHERE id BETWEEN ? AND ?"


class OutboxWrites:
    """Gathers rows, who has taken them, and their deletions."""

    __slots__ = (
        "_batches",
        "_deferred",
        "_fetched",
        "_figures",
        "_group_commit",
        "_live",
        "_pending",
        "_reader",
        "_recent",
        "_uplinks",
        "_writer",
    )

    def __init__(
        self,
        writer: Writer,
        reader: OutboxReader,
        recent: RecentRows,
        batches: OutboxBatches,
        fetched: FetchedRows,
        figures: OutboxFigures,
        uplinks: UplinkBits,
        pending: PendingBatch | None,
    ) -> None:
        self._live: dict[int, Live] = {}
        self._uplinks = uplinks
        self._writer = writer
        self._reader = reader
        self._recent = recent
        self._batches = batches
        self._fetched = fetched
        self._figures = figures
        self._pending = pending
        self._deferred = DeferredRows(writer, self._write, self._note_late)
        self._group_commit = GroupCommit(writer)

    def begin_live(self, live_way: LiveWay, uplink: int = 1) -> Live:
        """Give an uplink's live rows to `live_way` as they are added."""
        live = self._live[uplink] = Live(uplink, live_way)
        return live

    def end_live(self, uplink: int = 1) -> None:
        """Give it no more, and have written what the fleet has not acknowledged."""
        self._live.pop(uplink, None)
        self._deferred.write()

    def may_leave(self, row: OutboxRow) -> bool:
        """Return whether a live row may be sent: its publisher's answer does not wait for the disk.

        With one that does, a packet identifier or a frame's number is written: if it left before
        and the power went, the message would come again under another number.
        """
        return not row.awaits_commit or row.id <= self._batches.committed_id

    def answered(self, delay: float, uplink: int = 1) -> None:
        """Note that an uplink had a PUBACK after `delay` seconds."""
        live = self._live.get(uplink)
        if live is not None:
            live.delay = delay

    def add(
        self, row: OutboxRow, within: float | None, wait: float, barrier: Barrier | None
    ) -> None:
        """Write a row, or put that off (`Outbox.add`), and give it to its uplinks."""
        if row.lane != LIVE or not self._live:
            self._write(row, self._group(within, wait))
            return
        takers, soon, drains = [], 0, False
        for live in self._live.values():
            if live.uplink & row.uplinks and live.way.takes(row):
                takers.append(live)
                if not live.way.is_free:
                    drains = True
                elif live.delay < wait:
                    soon |= live.uplink
        if soon == row.uplinks:
            self._defer(row, wait, barrier)
        else:
            # the commits of a drain are frequent: this row goes with them
            self._write(row, within if drains else self._group(within, wait))
            row.awaits_commit = barrier is None and within is not None and row.qos > 0
        if takers:
            self._fetched.known([row])
        for live in takers:
            live.way.send(row)

    def change(self, rows: Sequence[OutboxRow], outcome: Outcome, within: float) -> None:
        """Write that fewer uplinks wait for rows, which ended for those `ending`."""
        written: dict[tuple[int, int], set[int]] = {}
        for row in rows:
            self._recent.change(row.id, row.uplinks)
            if row.id not in self._deferred:
                written.setdefault((row.uplinks, row.ending), set()).add(row.id)
            elif outcome is not Outcome.DELIVERED:
                self._writer.schedule_commit(0.0)
        for (uplinks, ending), identifiers in written.items():
            for each in ranges_of(identifiers):
                self._writer.add(_CHANGE, (self._uplinks.text(uplinks), *each), within)
            self._batches.remove(self._writer.batch)
            self._batches.deliver(self._writer.batch, ending, len(identifiers))
            self._reader.change(dict.fromkeys(identifiers, uplinks), self._writer.batch)

    def remove(self, rows: Sequence[OutboxRow], outcome: Outcome, within: float) -> None:
        """Delete rows, those that are not written by never writing them.

        Where the fleet has a message, what waits for that goes on; in all other cases it waits for
        the commit that says how the message ended.
        """
        written = []
        for row in rows:
            self._recent.remove(row.id)
            if row.barrier is not None and outcome is Outcome.DELIVERED:
                row.barrier.settle()
            if not self._deferred.discard(row.id):
                written.append(row)
        if unwritten := len(rows) - len(written):
            if outcome is Outcome.DELIVERED:
                self._figures.unwritten(unwritten)
            else:
                self._writer.schedule_commit(0.0)
        if written:
            self._delete(written, outcome, within)

    def _delete(self, rows: Sequence[OutboxRow], outcome: Outcome, within: float) -> None:
        identifiers = [row.id for row in rows]
        for each in ranges_of(identifiers):
            self._writer.add(_DELETE, each, within)
        batch = self._writer.batch
        self._batches.remove(batch)
        if outcome in (Outcome.DELIVERED, Outcome.REJECTED):
            self._batches.deliver(batch, rows[0].ending, len(rows))
        self._reader.leave(identifiers, batch)

    def _defer(self, row: OutboxRow, wait: float, barrier: Barrier | None) -> None:
        if barrier is not None and self._pending is not None:
            row.barrier = barrier
            barrier.add()
            self._pending.defer_to_batch()
        self._deferred.add(row, wait)

    def _group(self, within: float | None, wait: float) -> float | None:
        """Return in how many seconds to commit a row whose publisher would wait for the fleet."""
        return self._group_commit.within() if wait and within == 0.0 else within

    def _note_late(self, uplinks: int) -> None:
        for live in self._live.values():
            if live.uplink & uplinks:
                live.delay = math.inf

    def _write(self, row: OutboxRow, within: float | None = 0.0) -> None:
        values, uplinks = to_columns(row), self._uplinks.text(row.uplinks)
        batch = self._writer.add(_INSERT, (*values, self._reader.indexed, uplinks), within)
        self._recent.add(row.id, row.size, values, row.uplinks)
        self._batches.add(batch, row.id)

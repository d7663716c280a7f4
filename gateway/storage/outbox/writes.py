"""Decides which rows of the outbox are written, and when: those acknowledged in time never are."""

import asyncio
import math
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Protocol

from gateway.counters import Counters
from gateway.mqtt.output import Barrier
from gateway.storage.engine.many_rows import insert_statement, ranges_of
from gateway.storage.engine.pending_batch import PendingBatch
from gateway.storage.engine.writer import Writer
from gateway.storage.outbox.reader import OutboxReader
from gateway.storage.outbox.row import COLUMNS, LIVE, OutboxRow, Outcome, to_columns
from gateway.storage.outbox.uplinks import UplinkBits

GROUP_SECONDS = 0.25
"""The most seconds from one commit of rows to the next, while rows keep arriving."""

GROUP_ROWS = 256
"""Rows with which a commit begins at once."""

QUIET_SECONDS = 0.02
"""Seconds without a row after which a commit waits no longer: publishers wait for it."""

QUIET_GAPS = 8
"""The same as a multiple of the time between rows, if that is less: fast publishers pause
sooner."""

_INSERT = insert_statement("outbox", (*COLUMNS, "indexed", "uplinks"))
_CHANGE = "UPDATE outbox SET uplinks = ? WHERE id BETWEEN ? AND ?"
_DELETE = "DELETE FROM outbox WHERE id BETWEEN ? AND ?"

_DELIVERED = Outcome.DELIVERED  # CPython 3.11 takes 50 ns to find it


class LiveSender(Protocol):
    """An uplink while its link is up: it gets live rows as they are added."""

    is_free: bool
    """Whether an accepted row can be acknowledged soon: nothing older waits to be sent."""

    def accepts(self, row: OutboxRow) -> bool:
        """Return whether `send` will follow, and set `is_free`.

        A row that it does not accept is read from the outbox later.
        """
        ...

    def send(self, row: OutboxRow) -> None:
        """Send the row in this turn, or hold it until the window has capacity for it."""
        ...


class Live:
    """A connected uplink, by its bit.

    `delay` is how many seconds its last PUBACK took. It is infinite after a row had to be written
    without one: then rows are written at once until one is acknowledged in time.
    """

    __slots__ = ("delay", "sender", "uplink")

    def __init__(self, uplink: int, sender: LiveSender) -> None:
        self.uplink = uplink
        self.sender = sender
        self.delay = 0.0


class GroupCommit:
    """How long the commit of a row may wait for others.

    Commits wear a card more than rows do: one of a single row writes some ninety times its payload,
    one of two hundred rows four times. The first row after a pause is committed at once.
    """

    __slots__ = ("_batch", "_closed", "_committed", "_last", "_quiet", "_rows", "_timer", "_writer")

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._batch = 0  # the batch of the rows that are counted
        self._rows = 0
        self._last = 0.0  # when the last row arrived
        self._closed = -math.inf  # when the last batch with such rows was closed
        self._committed = 0.0  # when publishers had their answers
        self._quiet = QUIET_SECONDS
        self._timer: asyncio.TimerHandle | None = None
        writer.before_batch.append(self._close)
        writer.on_committed.append(self._note_commit)

    def seconds_to_commit(self) -> float:
        """Return the most seconds until the commit of one more row must begin."""
        loop = asyncio.get_running_loop()
        self._last = now = loop.time()
        if self._batch != self._writer.batch:
            self._batch, self._rows = self._writer.batch, 0
        self._rows += 1
        left = self._closed + GROUP_SECONDS - now
        if left <= 0.0 or self._rows >= GROUP_ROWS:
            return 0.0
        if self._timer is None:
            self._timer = loop.call_at(now + self._quiet, self._timer_ended)
        return left

    def _close(self) -> None:
        """After a batch is closed, measure how fast its rows arrived once publishers could send."""
        if self._batch == self._writer.batch:
            self._closed = asyncio.get_running_loop().time()
            # until the commit, publishers waited for their answers: that time says nothing
            gap = max(0.0, self._last - self._committed) / self._rows
            self._quiet = min(QUIET_SECONDS, QUIET_GAPS * gap)

    def _note_commit(self, _: int) -> None:
        self._committed = asyncio.get_running_loop().time()

    def _timer_ended(self) -> None:
        """Have the batch committed if no row arrived for a while, or wait on."""
        self._timer = None
        if self._batch != self._writer.batch:  # it was closed
            return
        loop = asyncio.get_running_loop()
        if loop.time() < (quiet_at := self._last + self._quiet):
            self._timer = loop.call_at(quiet_at, self._timer_ended)
        else:
            self._writer.schedule_commit(0.0)
            self._writer.hand_over()


class DeferredRows:
    """Rows that are not written yet, in order of arrival, each with its longest wait.

    Every batch includes all of them: once it is on disk, each number up to its last one is in the
    outbox or in the ledger. A batch is begun for their sake only if one has waited too long. They
    are no more than the uplink has in flight and in memory (`Lanes`).
    """

    __slots__ = ("_armed_for", "_on_late", "_timer", "_write", "_writer", "rows")

    def __init__(
        self,
        writer: Writer,
        rows: dict[int, OutboxRow],
        write: Callable[[OutboxRow], object],
        on_late: Callable[[int], None],
    ) -> None:
        self.rows = rows  # by id, rising
        self._writer = writer
        self._write = write
        self._on_late = on_late
        self._timer: asyncio.TimerHandle | None = None
        self._armed_for = math.inf  # when the timer ends
        writer.before_batch.append(self._write_all)

    def add(self, row: OutboxRow, wait: float) -> None:
        """Hold a row for `wait` seconds at most."""
        row.due = due = monotonic() + wait
        self.rows[row.id] = row
        # a timer ends for rows that are acknowledged by then, rather than to be set for each
        if due < self._armed_for:
            self._arm(due)

    def write(self) -> None:
        """Have the held rows written: nobody will acknowledge them soon."""
        if self.rows:
            self._writer.schedule_commit(0.0)
            self._writer.hand_over()

    def _write_all(self) -> None:
        """Add all rows to the batch that is about to close, by rising id."""
        if self.rows:
            for row in self.rows.values():
                self._write(row)
            self.rows.clear()

    def _arm(self, due: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._armed_for = due
        self._timer = asyncio.get_running_loop().call_at(due, self._timer_ended)

    def _timer_ended(self) -> None:
        """Have the rows written if one is due, or wait until the next is."""
        self._timer, self._armed_for = None, math.inf
        due = min([row.due for row in self.rows.values()], default=math.inf)
        if due <= (now := monotonic()):
            for row in self.rows.values():
                if row.due <= now:
                    self._on_late(row.uplinks)
            self.write()
        elif due < math.inf:
            self._arm(due)


class OutboxWrites:
    """Adds rows, their uplinks, and their deletions to the writer's batches.

    `committed_id` is the highest id on disk. `delivering` counts by uplink the rows that the fleet
    has acknowledged or rejected, and that a crash would bring back: not yet on disk.
    """

    __slots__ = (
        "_counters",
        "_deferred",
        "_delivered",
        "_group_commit",
        "_last_ids",
        "_live",
        "_pending",
        "_reader",
        "_removing",
        "_uplinks",
        "_writer",
        "committed_id",
        "delivering",
    )

    def __init__(
        self,
        writer: Writer,
        reader: OutboxReader,
        counters: Counters,
        uplinks: UplinkBits,
        pending: PendingBatch | None,
    ) -> None:
        self.committed_id = 0
        self.delivering: dict[int, int] = {}
        self._last_ids: dict[int, int] = {}  # by batch, rising, as are the two below
        self._delivered: dict[int, dict[int, int]] = {}
        self._removing: dict[int, bool] = {}
        self._live: dict[int, Live] = {}
        self._uplinks = uplinks
        self._writer = writer
        self._reader = reader
        self._counters = counters
        self._pending = pending
        self._deferred = DeferredRows(writer, reader.unwritten, self._write_held, self._note_late)
        self._group_commit = GroupCommit(writer)
        counters.add("tidegate/outbox/unwritten", 0)

    def begin_live(self, sender: LiveSender, uplink: int = 1) -> Live:
        """Pass an uplink's live rows to `sender` as they are added."""
        live = self._live[uplink] = Live(uplink, sender)
        return live

    def end_live(self, uplink: int = 1) -> None:
        """Stop that, and have unacknowledged rows written."""
        self._live.pop(uplink, None)
        self._deferred.write()

    def add(
        self, row: OutboxRow, commit_within: float | None, wait: float, barrier: Barrier | None
    ) -> None:
        """Write a row, or defer that (`Outbox.add`), and pass it to its uplinks."""
        grouped = bool(wait) and commit_within == 0.0  # its publisher would wait for the fleet too
        if row.lane != LIVE or not self._live:
            self._write(row, self._group_commit.seconds_to_commit() if grouped else commit_within)
            return
        takers, soon, drains = [], 0, False
        for live in self._live.values():
            if live.uplink & row.uplinks and live.sender.accepts(row):
                takers.append(live)
                if not live.sender.is_free:
                    drains = True
                elif live.delay < wait:
                    soon |= live.uplink
        # if one uplink will not acknowledge in time, the row must be written for it anyway
        if soon == row.uplinks:
            if barrier is not None and self._pending is not None:
                row.barrier = barrier
                barrier.add()
                self._pending.defer_to_batch()
            self._deferred.add(row, wait)
        else:
            # the commits of a drain are frequent: this row is part of them
            grouped = grouped and not drains
            self._write(row, self._group_commit.seconds_to_commit() if grouped else commit_within)
            is_batched = barrier is None and commit_within is not None
            row.awaits_commit = is_batched and row.message.qos > 0
            if takers:
                self._reader.hold(row)  # a read of it returns this object, which its sender changes
        for live in takers:
            live.sender.send(row)

    def may_be_sent(self, row: OutboxRow) -> bool:
        """Return whether a live row may be sent: its publisher's answer does not wait for the disk.

        An answer that does comes with a stored packet identifier or frame number. If the row were
        sent before and the power failed, the message would be sent again under another number.
        """
        return not row.awaits_commit or row.id <= self.committed_id

    def change(self, rows: Sequence[OutboxRow], outcome: Outcome, commit_within: float) -> None:
        """Write that fewer uplinks wait for rows, which ended for those `ending`."""
        written: dict[tuple[int, int], set[int]] = {}
        for row in rows:
            self._reader.recent.change(row.id, row.uplinks)
            if row.id not in self._deferred.rows:
                written.setdefault((row.uplinks, row.ending), set()).add(row.id)
            elif outcome is not Outcome.DELIVERED:
                self._writer.schedule_commit(0.0)
        for (uplinks, ending), identifiers in written.items():
            for each in ranges_of(identifiers):
                self._writer.add(_CHANGE, (self._uplinks.text(uplinks), *each), commit_within)
            self._removing[self._writer.batch] = True
            self._deliver(ending, len(identifiers))
            self._reader.change(dict.fromkeys(identifiers, uplinks), self._writer.batch)

    def delete(self, rows: Sequence[OutboxRow], outcome: Outcome, commit_within: float) -> None:
        """Delete rows; unwritten ones are simply never written.

        If the fleet has a message, answers that wait for it are sent; otherwise they wait for the
        commit of its outcome.
        """
        delivered = outcome is _DELIVERED
        written = []
        for row in rows:
            if row.barrier is not None and delivered:
                row.barrier.settle()
            if self._deferred.rows.pop(row.id, None) is None:
                self._reader.recent.remove(row.id)
                written.append(row.id)
        if unwritten := len(rows) - len(written):
            if delivered:
                self._counters.add("tidegate/outbox/unwritten", unwritten)
            else:
                self._writer.schedule_commit(0.0)
        if not written:
            return
        for each in ranges_of(written):
            self._writer.add(_DELETE, each, commit_within)
        self._removing[self._writer.batch] = True
        if delivered or outcome is Outcome.REJECTED:
            self._deliver(rows[0].ending, len(written))
        self._reader.delete(written, self._writer.batch)

    def committed(self, batch: int) -> tuple[bool, bool]:
        """Note that all up to `batch` is on disk; return whether that added and deleted rows."""
        added = removed = False
        while self._last_ids and (first := next(iter(self._last_ids))) <= batch:
            self.committed_id = self._last_ids.pop(first)
            added = True
        while self._removing and (first := next(iter(self._removing))) <= batch:
            removed = self._removing.pop(first)
        while self._delivered and (first := next(iter(self._delivered))) <= batch:
            for uplink, rows in self._delivered.pop(first).items():
                self.delivering[uplink] -= rows
        return added, removed

    def _write(self, row: OutboxRow, commit_within: float | None = 0.0) -> None:
        values, reader = to_columns(row), self._reader
        uplinks = self._uplinks.text(row.uplinks) if self._uplinks.several else None
        batch = self._writer.add(_INSERT, (*values, reader.indexed, uplinks), commit_within)
        reader.recent.add(row.id, row.size, values, row.uplinks)
        if row.id > self._last_ids.get(batch, 0):
            self._last_ids[batch] = row.id

    def _write_held(self, row: OutboxRow) -> None:
        """Write a row that is being sent: a read of it returns this object."""
        self._write(row)
        self._reader.hold(row)

    def _deliver(self, uplink: int, rows: int) -> None:
        """Note that the present batch ends this many rows of an uplink."""
        of_batch = self._delivered.setdefault(self._writer.batch, {})
        of_batch[uplink] = of_batch.get(uplink, 0) + rows
        self.delivering[uplink] = self.delivering.get(uplink, 0) + rows

    def _note_late(self, uplinks: int) -> None:
        for live in self._live.values():
            if live.uplink & uplinks:
                live.delay = math.inf

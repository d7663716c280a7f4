"""The messages that wait for the fleet: until its PUBACK, in SQLite if that is late."""

import asyncio
from collections.abc import Callable, Iterable, Sequence

from gateway.counters import Counters
from gateway.mqtt.output import Barrier
from gateway.settings.outbox import Mode
from gateway.settings.when_full import GIVING_UP, WhenFull
from gateway.storage.engine.database import Database
from gateway.storage.engine.pending_batch import PendingBatch
from gateway.storage.engine.writer import Writer
from gateway.storage.outbox.bounds import (
    MAX_LATEST_TOPICS,
    OutboxBounds,
    OutboxSettings,
    OutboxTotals,
    log_excess,
)
from gateway.storage.outbox.expiry import OutboxExpiry, expiry_of
from gateway.storage.outbox.oldest import OldestRows
from gateway.storage.outbox.reader import OutboxReader
from gateway.storage.outbox.row import RECALL, OutboxRow, Outcome, row_size
from gateway.storage.outbox.uplinks import EVERY, Places, UplinkBits
from gateway.storage.outbox.writes import OutboxWrites

READING = 0.001
"""Seconds until it is asked again whether a read has ended."""

CAUSES = (*GIVING_UP, "latest")
"""Why an acknowledged message is dropped."""

# CPython 3.11 takes 50 ns to find a member of an enumeration, and every message needs these.
_EXPIRE = Mode.EXPIRE
_EVICTED, _EXPIRED = Outcome.EVICTED, Outcome.EXPIRED


class Outbox:
    """Rows in the order of arrival; ids rise by one and are never reused in a run.

    Each of the `uplinks` reads it separately, under its bit (`UplinkBits`); a row is deleted when
    none waits for it any more. `writes` passes live rows to the uplinks that are connected, as they
    are added. `bounds` has the totals, by stream and in all, and the newest id; `oldest.time` is
    the time of the oldest row. `lanes` are the lanes of rows since the start; `recalled` rows are
    in the lane `recall`, whose outcomes are not reported, since their numbers have ended before.
    `on_change` are called after each commit that added or deleted rows. `on_outcome` are called
    with rows, outcome and reason, when rows end for the uplinks that are `ending` in them. That is
    in the turn of the deletion: rows that they write are in the same batch. A row that was not
    fetched has no content of the publisher.

    A caller calls `admits` first, and refuses the message with 0x97 after False. If the settings
    evict messages for others, `add` does so in its own batch. A row must be claimed with `claim`
    before it is sent: it may have been deleted, or have expired, since it was fetched.
    """

    __slots__ = (
        "_counters",
        "_database",
        "_due",
        "_expiry",
        "_reader",
        "_totals",
        "_writer",
        "bounds",
        "lanes",
        "oldest",
        "on_change",
        "on_outcome",
        "recalled",
        "uplinks",
        "writes",
    )

    def __init__(
        self,
        database: Database,
        writer: Writer,
        counters: Counters,
        settings: OutboxSettings | None = None,
        pending: PendingBatch | None = None,
        uplinks: Sequence[str] = (),
    ) -> None:
        self.uplinks = UplinkBits(uplinks, lambda: self.bounds.rows)
        self.lanes: set[str] = set()
        self.recalled = 0
        self.on_change: list[Callable[[], None]] = []
        self.on_outcome: list[Callable[[Sequence[OutboxRow], Outcome, str], None]] = []
        self._database = database
        self._writer = writer
        self._due = writer.due
        self._counters = counters
        self._reader = OutboxReader(database, writer, self.uplinks)
        self.bounds = OutboxBounds(settings or OutboxSettings(), self._reader.is_claimed)
        self._totals = OutboxTotals(database, writer, self.bounds)
        self._expiry = OutboxExpiry(self._reader, self.bounds, self._expire)
        self.writes = OutboxWrites(writer, self._reader, counters, self.uplinks, pending)
        self.oldest = OldestRows(self._reader, self.bounds, self._enforce_bounds)
        for cause in CAUSES:
            counters.add(f"tidegate/outbox/evicted/{cause}", 0)
        counters.before_reading.append(self._show)
        writer.on_committed.append(self._committed)

    @property
    def rows(self) -> int:
        """How many messages wait, those not yet on disk included."""
        return self.bounds.rows

    async def load(self) -> None:
        """Load the state of an earlier run; call it once, before anything is added."""
        await self._totals.load()
        bounds, last_id = self.bounds, self.bounds.last_id
        self.writes.committed_id = self.oldest.committed_id = last_id
        await self._expiry.load(self._database, last_id)
        await self.uplinks.load(self._database, bounds.rows)
        if bounds.rows:
            self.recalled = await self._reader.count_recalled()
        await self._reader.load(last_id, several=len(bounds) > 1)
        for stream in bounds:
            if stream.latest is not None and stream.rows:
                name = stream.settings.name
                stream.restore_latest(await self._reader.newest(name, MAX_LATEST_TOPICS))
        await self.oldest.load()

    def admits(self, rows: Sequence[OutboxRow]) -> bool:
        """Return whether `add` accepts all of `rows`, which are of different streams.

        Not if a bound refuses them, and not while the disk is full or fails: then the message is
        counted in `tidegate/outbox/rejected` or `tidegate/storage/rejected`.
        """
        size = 0
        for row in rows:
            row.size = row_size(row)
            size += row.size
        if not self._writer.accepts(size):
            self._counters.add("tidegate/storage/rejected")
            return False
        if self.bounds.rejects and self.bounds.refuses(rows):
            self._counters.add("tidegate/outbox/rejected")
            return False
        return True

    def fits(self, row: OutboxRow) -> bool:
        """Return whether `add` accepts `row` without an eviction."""
        row.size = row_size(row)
        return self._writer.accepts(row.size) and self.bounds.fits(row)

    @property
    def refusal(self) -> str:
        """Why a message is refused now."""
        return "the disk accepts no more messages" if self._writer.full else "the outbox is full"

    def add(
        self,
        row: OutboxRow,
        commit_within: float | None = 0.0,
        wait: float = 0.0,
        barrier: Barrier | None = None,
    ) -> int:
        """Add `row` to the present batch with its id and size; return the batch's number.

        Others may be evicted for it, or it itself: then it keeps the id 0. `commit_within` is as in
        `Writer.add`, also for the class `memory`. If the uplink sends the row at once and its last
        PUBACK took less than `wait` seconds, the row is written with any earlier batch, or if its
        PUBACK takes longer. `barrier` waits for that PUBACK, too.
        """
        bounds = self.bounds
        stream = bounds.streams.get(row.stream) or bounds.of(row.stream)
        if stream.settings.mode is _EXPIRE:
            row.message_expiry = expiry_of(row, stream.settings)
        if not row.size:  # otherwise `admits` has set it
            row.size = row_size(row)
        # nothing is evicted for a recalled row: the caller checks `fits`
        if stream.gives_up and row.lane != RECALL and bounds.crowded(stream, row):
            policy = self._evict_for(row)
            if policy is not None:
                row.ending = row.uplinks
                self._report([row], _EVICTED, policy)
                return self._writer.batch
        if not bounds.rows:
            self.oldest.time = row.time
        row.id = bounds.last_id = bounds.last_id + 1
        self.lanes.add(row.lane)
        if row.lane == RECALL:
            self.recalled += 1
        if self.uplinks.several:
            self.uplinks.count(row.uplinks, 1)
        if not bounds.added(stream, row):
            self._counters.add("tidegate/outbox/latest_overflow")
        self.writes.add(row, commit_within, wait, barrier)
        return self._writer.batch

    def remove(
        self,
        rows: Iterable[OutboxRow],
        outcome: Outcome,
        reason: str = "",
        commit_within: float = 0.0,
        uplink: int = EVERY,
    ) -> int:
        """Delete rows with an `outcome`, for an uplink; return the batch's number.

        Rows that other uplinks wait for stay. Deleted rows are skipped. `commit_within` is as in
        `Writer.add`.
        """
        deleted: list[OutboxRow] = []
        changed: list[OutboxRow] = []
        several = self.uplinks.several
        for row in rows:
            ending = row.uplinks & uplink
            if row.deleted or not ending:
                continue
            row.ending = ending
            if several:
                self.uplinks.ended(row.uplinks, ending)
            if ending != row.uplinks:
                changed.append(row)
                continue
            deleted.append(row)
            row.deleted = True
            if not row.claimed:  # a claimed row is the object that its sender has
                self._reader.mark_deleted(row.id)
        if deleted:
            self.writes.delete(deleted, outcome, commit_within)
            self.bounds.removed(deleted)
            if not self.bounds.rows:
                self.oldest.time = None
        if changed:
            self._change(changed, outcome, commit_within)
        ended = [*deleted, *changed] if changed else deleted
        if self.recalled:
            self.recalled -= len([row for row in deleted if row.lane == RECALL])
            ended = [row for row in ended if row.lane != RECALL]
        if ended:
            self._report(ended, outcome, reason)
        return self._writer.batch

    def supersede(self, row: OutboxRow) -> None:
        """Evict a row, unless it is being sent: a newer one replaces it."""
        if not row.deleted and not self._reader.is_claimed(row.id):
            self.remove([row], _EVICTED, Mode.LATEST)

    def claim(self, row: OutboxRow, now: int, uplink: int = 1) -> bool:
        """Return whether `row` may be sent to an uplink at `now` (ms since 1970).

        False if it was deleted since it was fetched, or has expired and ends here. From now on it
        is not evicted, while the caller holds it or until the caller clears its bit in `claimed`:
        it is unknown whether the fleet has it.
        """
        clock = self._expiry.clock
        if clock.steps:
            row.stepped = clock.after(row.id)
        if row.message_expiry is not None and not row.deleted and self._expiry.has_passed(row, now):
            self.remove([row], _EXPIRED)
            self._writer.hand_over()
        if row.deleted or not row.uplinks & uplink:
            return False
        row.claimed |= uplink
        return True

    async def sweep(self, now: int, monotonic: float) -> bool:
        """End rows that have waited too long at `now` (ms since 1970), a bounded number.

        `monotonic` (seconds) distinguishes a step of the wall clock from time that has passed.
        Return whether there may be more to end at once. Raises sqlite3.Error.
        """
        self.bounds.log_excess = log_excess(self._database.path)
        more = await self._expiry.sweep(now, monotonic)
        self._enforce_bounds()
        return more

    def end_turn(self) -> None:
        """Have the writer commit what was added here, outside a turn of the server."""
        if self._due.wanted:
            self._writer.hand_over()

    async def fetch(
        self,
        after_id: int,
        limit: int,
        up_to: int | None = None,
        lane: str | None = None,
        stream: str | None = None,
        uplink: int = 1,
    ) -> list[OutboxRow]:
        """Return committed rows of an uplink with `after_id` < id <= `up_to` in rising order.

        At most `limit` of them, fewer after MAX_FETCH_BYTES (but at least one, if there is one);
        only those of `lane` and `stream` unless these are None.
        """
        up_to = self.writes.committed_id if up_to is None else up_to
        return await self._reader.fetch(
            after_id, up_to, limit, lane=lane, stream=stream, uplink=uplink
        )

    async def change_uplinks(
        self, names: Sequence[str], places: Places, held: Sequence[OutboxRow] = ()
    ) -> None:
        """Have rows wait for other uplinks, `places` of which are those of before.

        No uplink may be up, and `held` are rows that somebody holds all the same. What waited for
        one that goes, and for no other, waits for the first.
        """
        await self._writer.wait_for(self._writer.batch)  # of what the links have delivered
        while self._reader.is_reading:  # noqa: ASYNC110 - it would bring rows with earlier bits
            await asyncio.sleep(READING)  # reads are short, and know of nobody who waits
        changed, statements = self.uplinks.change(names, places)
        known = {id(row): row for row in (*held, *self._reader.rows, *self.bounds.rows_in_memory)}
        for row in known.values():
            row.uplinks, row.claimed = changed(row.uplinks), 0
        self._reader.change_uplinks(changed, self.bounds.last_id)
        for statement, values in statements:
            self._writer.add(statement, values)
        self._writer.hand_over()

    async def close(self) -> None:
        """End the reads of the database, which may close from now on."""
        await self.oldest.close()

    def _evict_for(self, row: OutboxRow) -> WhenFull | None:
        """Evict others for `row`; return the policy if it is evicted itself."""
        bounds = self.bounds
        older = bounds.replaced(row)
        if older is not None:
            self.remove([older], _EVICTED, Mode.LATEST)
        while (eviction := bounds.next_to_evict(row)) is not None:
            if eviction.row is row:
                return eviction.policy
            self.remove([eviction.row], _EVICTED, eviction.policy)
        return None

    def change(self, settings: OutboxSettings) -> None:
        """Apply these bounds from now on, and evict the excess."""
        self.bounds.change(settings)
        self._enforce_bounds()
        self.oldest.read_soon()

    def _enforce_bounds(self) -> None:
        """Evict the excess, as far as the oldest rows are known."""
        while (eviction := self.bounds.next_to_evict()) is not None:
            self.remove([eviction.row], _EVICTED, eviction.policy)
        self._writer.hand_over()

    def _change(self, rows: Sequence[OutboxRow], outcome: Outcome, commit_within: float) -> None:
        for row in rows:
            row.uplinks &= ~row.ending
            row.claimed &= ~row.ending
            self.bounds.of(row.stream).changed(row)
        self.writes.change(rows, outcome, commit_within)

    def _expire(self, rows: Sequence[OutboxRow], reason: str) -> None:
        self.remove(rows, _EXPIRED, reason)

    def _report(self, rows: list[OutboxRow], outcome: Outcome, reason: str) -> None:
        """Count the outcome of rows, and call the listeners."""
        if outcome is _EVICTED:
            self._counters.add(f"tidegate/outbox/evicted/{reason}", len(rows))
        elif outcome is _EXPIRED:
            self._counters.add("tidegate/outbox/expired", len(rows))
        for callback in self.on_outcome:
            callback(rows, outcome, reason)

    def _show(self) -> None:
        """Publish the totals of the outbox, its streams and uplinks."""
        bounds, values = self.bounds, self._counters.values
        values["tidegate/outbox/rows"] = bounds.rows
        values["tidegate/outbox/bytes"] = bounds.bytes
        for stream in bounds:
            values[stream.rows_name] = stream.rows
            values[stream.bytes_name] = stream.bytes
        if self.uplinks.several:
            for name, rows in zip(self.uplinks.names, self.uplinks.rows, strict=True):
                values[f"tidegate/uplink/{name}/waiting"] = rows

    def _committed(self, batch: int) -> None:
        added, removed = self.writes.committed(batch)
        self._reader.forget()
        self.oldest.committed(self.writes.committed_id, removals=removed)
        if added or removed:
            for callback in self.on_change:
                callback()

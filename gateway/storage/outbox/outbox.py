"""The messages that wait for the fleet: until a remote PUBACK, in SQLite if that is late."""

from collections.abc import Callable, Iterable, Sequence

from gateway.config.when_full import WhenFull
from gateway.counters import Counters
from gateway.mqtt.output import Barrier
from gateway.storage.engine.database import Database
from gateway.storage.engine.pending_batch import PendingBatch
from gateway.storage.engine.writer import Writer
from gateway.storage.outbox.batches import OutboxBatches
from gateway.storage.outbox.fetched_rows import FetchedRows
from gateway.storage.outbox.figures import OutboxFigures
from gateway.storage.outbox.lane import RECALL
from gateway.storage.outbox.looks import OutboxLooks
from gateway.storage.outbox.outbox_row import OutboxRow
from gateway.storage.outbox.outcome import Outcome
from gateway.storage.outbox.reader import OutboxReader
from gateway.storage.outbox.recent_rows import RecentRows
from gateway.storage.outbox.row_size import row_size
from gateway.storage.outbox.streams.expiry import OutboxExpiry, expiry_of
from gateway.storage.outbox.streams.heads import OutboxHeads
from gateway.storage.outbox.streams.retention import Mode, OutboxSettings, log_excess
from gateway.storage.outbox.streams.stream import MAX_LATEST_TOPICS
from gateway.storage.outbox.streams.streams import OutboxStreams
from gateway.storage.outbox.streams.totals import OutboxTotals
from gateway.storage.outbox.uplink_bits import EVERY, UplinkBits
from gateway.storage.outbox.writes import OutboxWrites


class Outbox:
    """Rows in the order in which they came; ids rise by one and are never used twice in a run.

    Each of the `uplinks` reads it by itself, under its bit (`UplinkBits`); a row leaves when none
    waits for it any more. `writes` gives live rows to those that are up, as they are added. `lanes`
    are the lanes that rows have had since the start; `recalled` rows are in the lane `recall`, of
    which no outcome is reported, since their numbers have ended before. `on_change` are called
    after each commit that brought or removed rows. `on_outcome` are called with rows that end for
    the uplinks that are `ending` in them, with how and why, in the turn that gathers it: what they
    gather is in the same batch. A row that was not fetched comes without what the publisher put
    into it.

    A caller asks `admits` first and refuses the message with 0x97 when it does not, calling
    `refuse()`, which counts it in `tidegate/outbox/rejected` or `tidegate/storage/rejected`. Where
    the settings give up messages for others, `add` does so in its own batch. What is about to be
    sent goes through `take`: a row may have left, or expired, since it was fetched.
    """

    __slots__ = (
        "_batches",
        "_database",
        "_expiry",
        "_fetched",
        "_figures",
        "_looks",
        "_reader",
        "_recent",
        "_streams",
        "_totals",
        "_writer",
        "lanes",
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
        self.uplinks = UplinkBits(uplinks)
        self.lanes: set[str] = set()
        self.recalled = 0
        self.on_change: list[Callable[[], None]] = []
        self.on_outcome: list[Callable[[Sequence[OutboxRow], Outcome, str], None]] = []
        self._database = database
        self._writer = writer
        self._fetched = FetchedRows()
        self._streams = OutboxStreams(settings or OutboxSettings(), self._fetched.is_taken)
        self._totals = OutboxTotals(database, writer, self._streams)
        self._reader = OutboxReader(database, writer, self.uplinks)
        self._recent = RecentRows()
        self._batches = OutboxBatches()
        self._expiry = OutboxExpiry(self._reader, self._streams, self._fetched, self._expire)
        self._figures = OutboxFigures(counters, self._streams, self.uplinks)
        self.writes = OutboxWrites(
            writer,
            self._reader,
            self._recent,
            self._batches,
            self._fetched,
            self._figures,
            self.uplinks,
            pending,
        )
        heads = OutboxHeads(self._reader, self._streams)
        self._looks = OutboxLooks(
            self._reader, heads, self._streams, self._batches, self._keep_bounds
        )
        writer.on_committed.append(self._committed)

    @property
    def rows(self) -> int:
        """How many messages wait, gathered ones included."""
        return self._streams.rows

    @property
    def bytes(self) -> int:
        """What they take of the file (`row_size`)."""
        return self._streams.bytes

    @property
    def committed_id(self) -> int:
        """The highest id on disk, up to which `fetch` finds rows."""
        return self._batches.committed_id

    def removing(self, uplink: int = 1) -> int:
        """Return how many deliveries of an uplink a crash would bring back: not yet on disk."""
        return self._batches.delivering.get(uplink, 0)

    @property
    def last_id(self) -> int:
        """The id that was given last."""
        return self._totals.last_id

    @property
    def oldest_time(self) -> int | None:
        """Since when (ms since 1970) the oldest row waits, None when none does.

        After it was removed it follows within a second of the commit (LOOK_SECONDS).
        """
        return self._looks.oldest_time

    async def load(self) -> None:
        """Learn what an earlier run left; call it once, before anything is added."""
        await self._totals.load()
        self._batches.committed_id = self.last_id
        await self._expiry.load(self._database, self.last_id)
        self._recent.start(self.last_id)
        await self.uplinks.load(self._database, self.rows)
        if self.rows:
            self.recalled = await self._reader.count_recalled()
        await self._reader.load(self.last_id, several=len(self._streams) > 1)
        for stream in self._streams:
            if stream.latest is not None and stream.rows:
                name = stream.settings.name
                stream.restore_latest(await self._reader.newest(name, MAX_LATEST_TOPICS))
        await self._looks.first()
        self._figures.show(*(stream.settings.name for stream in self._streams))

    def by_priority(self) -> list[list[str | None]]:
        """Return the streams by falling priority (`OutboxStreams.by_priority`)."""
        return self._streams.by_priority()

    def admits(self, rows: Sequence[OutboxRow]) -> bool:
        """Return whether `add` takes all of `rows`, which are of different streams.

        Not where a bound refuses what is too much, and not while the disk takes nothing more.
        """
        for row in rows:
            row.size = row_size(row)
        return not self._writer.full and not self._streams.refuses(rows)

    def fits(self, row: OutboxRow) -> bool:
        """Return whether `add` takes `row` without giving up anything."""
        row.size = row_size(row)
        return not self._writer.full and self._streams.fits(row)

    @property
    def refusal(self) -> str:
        """Why a message is refused now, in words."""
        return "the disk takes no more" if self._writer.full else "the outbox is full"

    @property
    def has_room(self) -> bool:
        """Whether the outbox, and each stream of its own, has room for a small message."""
        return self._streams.have_room

    def refuse(self) -> None:
        """Count a message that was refused, by whose bound it was."""
        self._figures.refused(by_disk=self._writer.full)

    def add(
        self,
        row: OutboxRow,
        within: float | None = 0.0,
        wait: float = 0.0,
        barrier: Barrier | None = None,
    ) -> int:
        """Gather `row`, giving it its id and size; return the number of the present batch.

        Others may leave for it, or it is itself given up: then it keeps the id 0. `within` is as in
        `Writer.add`, also for the class `memory`. If the uplink takes the row at once and lately
        was answered within `wait` seconds, it is written only if its PUBACK takes longer, or with
        any batch before; `barrier` waits for that PUBACK, too.
        """
        stream = self._streams.of(row.stream)
        row.message_expiry = expiry_of(row, stream.settings)
        if not row.size:  # `admits` has asked
            row.size = row_size(row)
        makes_room = stream.may_give_up and row.lane != RECALL  # that takes nobody's room
        policy = self._make_room(row) if makes_room else None
        if policy is not None:
            row.ending = row.uplinks
            self._tell([row], Outcome.EVICTED, policy)
            return self._writer.batch
        row.id = self._totals.last_id = self._totals.last_id + 1
        self._looks.added(row.time)
        self.lanes.add(row.lane)
        self.recalled += row.lane == RECALL
        self.uplinks.count(row.uplinks, 1)
        if not self._streams.added(row):
            self._figures.overflowed()
        self._figures.show(row.stream)
        self.writes.add(row, within, wait, barrier)
        return self._writer.batch

    def remove(
        self,
        rows: Iterable[OutboxRow],
        outcome: Outcome,
        reason: str = "",
        within: float = 0.0,
        uplink: int = EVERY,
    ) -> int:
        """Gather that rows ended as `outcome` says, for an uplink; return the batch's number.

        Those that other uplinks wait for stay. Rows that have left meanwhile are passed over.
        `within` is as in `Writer.add`.
        """
        leaving: list[OutboxRow] = []
        staying: list[OutboxRow] = []
        for row in rows:
            ending = row.uplinks & uplink
            if row.left or not ending:
                continue
            row.ending = ending
            self.uplinks.count(ending, -1)
            (leaving if ending == row.uplinks else staying).append(row)
        if leaving:
            self._remove(leaving, outcome, within)
        if staying:
            self._change(staying, outcome, within)
        if ended := leaving + staying:
            self._tell(ended, outcome, reason)
            self._figures.show(*{row.stream for row in ended})
        return self._writer.batch

    def take(self, row: OutboxRow, now: int, uplink: int = 1) -> bool:
        """Return whether `row` may be sent to an uplink at `now` (ms since 1970).

        It may not when it has left since it was fetched, or ends here because its expiry has
        passed. From now on it makes no room for others, for as long as the caller holds it or
        until `put_back`: nobody can say whether the fleet has it.
        """
        row.stepped = self._expiry.stepped(row)
        if row.message_expiry is not None and not row.left and self._expiry.has_passed(row, now):
            self.remove([row], Outcome.EXPIRED)
            self.end_turn()
        if row.left or not row.uplinks & uplink:
            return False
        row.taken |= uplink
        return True

    def put_back(self, row: OutboxRow, uplink: int = 1) -> None:
        """Let a row that was taken make room again: the fleet has refused it for now."""
        row.taken &= ~uplink

    async def sweep(self, now: int, monotonic: float) -> bool:
        """End what has expired or waited too long by `now` (ms since 1970), a bounded number.

        `monotonic` (seconds) tells a step of the wall clock from time that has passed. Return
        whether there may be more to end at once. Raises sqlite3.Error.
        """
        self._streams.log_excess = log_excess(self._database.path)
        more = await self._expiry.sweep(now, monotonic, self.last_id)
        self._keep_bounds()
        return more

    def end_turn(self) -> None:
        """Have the writer commit what was gathered here, outside a turn of the server."""
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

        At most `limit` of them, fewer after MAX_FETCH_BYTES (but one at least, if there is
        one); only those of `lane` and `stream` unless these are None.
        """
        up_to = self.committed_id if up_to is None else up_to
        which = (after_id, up_to, limit)
        rows = self._recent.fetch(*which, lane=lane, stream=stream, uplink=uplink)
        if rows is None:
            rows = await self._reader.fetch(*which, lane=lane, stream=stream, uplink=uplink)
        return self._fetched.known(rows)

    async def close(self) -> None:
        """End the looks into the database, which may close from now on."""
        await self._looks.close()

    def _make_room(self, row: OutboxRow) -> WhenFull | None:
        """Have others leave for `row`; return the policy by which it is itself given up."""
        older = self._streams.replaced(row)
        if older is not None:
            self.remove([older], Outcome.EVICTED, Mode.LATEST)
        while (leaves := self._streams.next_to_go(row)) is not None:
            if leaves.row is row:
                return leaves.policy
            self.remove([leaves.row], Outcome.EVICTED, leaves.policy)
        return None

    def _keep_bounds(self) -> None:
        """Give up what is beyond the bounds, as far as it is known by now."""
        while (leaves := self._streams.next_to_go()) is not None:
            self.remove([leaves.row], Outcome.EVICTED, leaves.policy)
        self.end_turn()

    def _remove(self, rows: Sequence[OutboxRow], outcome: Outcome, within: float) -> None:
        for row in rows:
            row.left = True
            self._fetched.leaves(row)
            self.recalled -= row.lane == RECALL
        self.writes.remove(rows, outcome, within)
        self._streams.removed(rows)
        self._totals.removed()
        self._looks.removed()

    def _change(self, rows: Sequence[OutboxRow], outcome: Outcome, within: float) -> None:
        for row in rows:
            row.uplinks &= ~row.ending
            row.taken &= ~row.ending
            self._streams.of(row.stream).changed(row)
        self.writes.change(rows, outcome, within)

    def _expire(self, rows: Sequence[OutboxRow], reason: str) -> None:
        self.remove(rows, Outcome.EXPIRED, reason)

    def _tell(self, rows: Sequence[OutboxRow], outcome: Outcome, reason: str) -> None:
        rows = [row for row in rows if row.lane != RECALL]
        if not rows:
            return
        self._figures.ended(len(rows), outcome, reason)
        for callback in self.on_outcome:
            callback(rows, outcome, reason)

    def _committed(self, batch: int) -> None:
        added, removed = self._batches.committed(batch)
        self._reader.forget()
        self._looks.committed(removals=removed)
        if added or removed:
            for callback in self.on_change:
                callback()

"""In which order rows leave the outbox: live ones first, the backlog behind them."""

from collections import deque

from gateway.storage.outbox.lane import BACKLOG, LIVE, RECALL
from gateway.storage.outbox.outbox import Outbox
from gateway.storage.outbox.outbox_row import OutboxRow
from gateway.uplink.row_cursor import RowCursor

MAX_FRESH_ROWS = 1_024
"""Live rows in memory that wait for the window; those beyond are read from the outbox."""

MAX_FRESH_BYTES = 1024 * 1024
"""Bytes of the same rows, as the outbox counts them."""


class Lanes:
    """Gives the rows of one connection of an uplink, each once.

    What waited when the connection came up is the backlog, and so is what a rule puts in the
    lane `backlog`; everything else is live. In each lane rows of a stream come in the order in
    which they were accepted, and so numbers rise in each stream and lane. Of what waited, streams
    with a higher priority go first; those with the same go in the order of acceptance. Behind the
    backlog comes what the fleet has asked for again, the lane `recall`. Live rows come from memory
    as they are added (`push`), unless there are too many: these are read as soon as they are on
    disk, and all behind them too until it has caught up. One whose publisher's answer waits for the
    disk stays until its commit, and those behind it.
    """

    __slots__ = (
        "_backlog",
        "_boundary",
        "_fresh",
        "_fresh_bytes",
        "_live",
        "_not_fresh",
        "_outbox",
        "_recalled",
        "_waited",
    )

    def __init__(self, outbox: Outbox, uplink: int = 1) -> None:
        self._outbox = outbox
        self._boundary = outbox.last_id
        self._live = RowCursor(outbox, self._boundary, lane=LIVE, uplink=uplink)
        self._waited = deque(
            [
                RowCursor(outbox, 0, self._boundary, stream=stream, uplink=uplink)
                for stream in streams
            ]
            for streams in outbox.by_priority()
        )
        self._backlog = RowCursor(outbox, self._boundary, lane=BACKLOG, uplink=uplink)
        self._recalled = RowCursor(outbox, 0, lane=RECALL, uplink=uplink)
        self._fresh: deque[OutboxRow] = deque()
        self._fresh_bytes = 0
        self._not_fresh = 0  # the highest id of a live row that has to be read

    def takes(self, row: OutboxRow) -> bool:
        """Return whether `push` may follow; if not, the row is read when it is on disk."""
        full = len(self._fresh) >= MAX_FRESH_ROWS or self._fresh_bytes >= MAX_FRESH_BYTES
        if full or not self._live.has_passed(self._not_fresh):
            self._not_fresh = row.id
            return False
        return True

    def push(self, row: OutboxRow) -> None:
        """Take in a live row behind all others."""
        self._fresh.append(row)
        self._fresh_bytes += row.size
        self._live.skip_to(row.id)

    @property
    def has_fresh(self) -> bool:
        """Whether live rows wait in memory."""
        return bool(self._fresh)

    def next_fresh(self) -> OutboxRow | None:
        """Return the next live row if it is in memory, None if there is none that may leave."""
        if not self._fresh or not self._outbox.writes.may_leave(self._fresh[0]):
            return None
        row = self._fresh.popleft()
        self._fresh_bytes -= row.size
        return row

    def waited(self, row: OutboxRow) -> bool:
        """Return whether `row` was in the outbox before the connection came up, or is recalled."""
        return row.id <= self._boundary or row.lane == RECALL

    @property
    def live_waits(self) -> bool:
        """Whether there may be a live row now."""
        return bool(self._fresh) or self._live.waits

    def next_live(self) -> OutboxRow | None:
        """Return what `live` does if it has been read already, else None."""
        return self.next_fresh() if self._fresh else self._live.ready()

    def next_waited(self) -> OutboxRow | None:
        """Return what `backlog` does if that is clear without a look at the disk, else None."""
        cursors = self._waited[0] if self._waited else ()
        return cursors[0].ready() if len(cursors) == 1 else None

    async def live(self) -> OutboxRow | None:
        """Return the next live row that is on disk, None when there is none at the moment.

        There is none either while one that came before waits in memory for its commit.
        """
        return None if self._fresh else await self._live.next()

    @property
    def backlog_waits(self) -> bool:
        """Whether the backlog, or the lane behind it, may have another row."""
        if self._waited and self._waited[0][0].is_read:
            return True
        if (cursors := self._next_cursors()) is not None:
            return any(cursor.waits for cursor in cursors)
        return self._has_backlog or self._has_recalled

    async def backlog(self) -> OutboxRow | None:
        """Return the next row of the backlog, None when there is none at the moment."""
        while (cursors := self._next_cursors()) is not None:
            row = await _first_of(cursors)
            if row is not None or self._next_cursors() is cursors:
                return row
        row = await self._backlog.next() if self._has_backlog else None
        if row is None and self._has_recalled:
            row = await self._recalled.next()
        return row

    def _next_cursors(self) -> list[RowCursor] | None:
        """Return the streams of the highest priority of which something waited."""
        while self._waited and all(cursor.ended for cursor in self._waited[0]):
            self._waited.popleft()
        return self._waited[0] if self._waited else None

    @property
    def _has_backlog(self) -> bool:
        return BACKLOG in self._outbox.lanes and self._backlog.waits

    @property
    def _has_recalled(self) -> bool:
        return self._outbox.recalled > 0 and self._recalled.waits


async def _first_of(cursors: list[RowCursor]) -> OutboxRow | None:
    """Return the row that was accepted first of several cursors."""
    found: list[tuple[int, RowCursor]] = []
    for cursor in cursors:
        row = await cursor.first()
        if row is not None:
            found.append((row.id, cursor))
    return min(found, key=lambda each: each[0])[1].pop() if found else None

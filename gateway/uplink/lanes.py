"""The order in which rows of the outbox are sent: live ones first, then the backlog."""

from collections import deque

from gateway.storage.outbox.outbox import Outbox
from gateway.storage.outbox.row import BACKLOG, LIVE, RECALL, OutboxRow

FETCH_ROWS = 256
"""Rows read from the outbox at a time."""

WITHOUT_END = 2**62
"""Above every row id that SQLite assigns in practice."""

MAX_FRESH_ROWS = 1_024
"""Live rows in memory that wait for the window; further ones are read from the outbox."""

MAX_FRESH_BYTES = 1024 * 1024
"""Bytes of the same rows, as the outbox counts them."""


class RowCursor:
    """Returns each row of an uplink with an id above `position` and up to `end` once.

    `rows` are those in memory; while `reading`, more may arrive. Without `lane` it reads the rows
    of all lanes except recalled ones, which only a cursor of their own lane returns.
    """

    __slots__ = ("_end", "_lane", "_outbox", "_stream", "_uplink", "position", "reading", "rows")

    def __init__(
        self,
        outbox: Outbox,
        position: int,
        end: int = WITHOUT_END,
        *,
        lane: str | None = None,
        stream: str | None = None,
        uplink: int = 1,
    ) -> None:
        self._outbox = outbox
        self.position = position
        self._end = end
        self._lane = lane
        self._stream = stream
        self._uplink = uplink
        self.rows: deque[OutboxRow] = deque()
        self.reading = False

    @property
    def waits(self) -> bool:
        """Whether there may be a row now."""
        if self.rows:
            return True
        return self.position < self._end and self.position < self._outbox.writes.committed_id

    @property
    def ended(self) -> bool:
        """Whether there will never be a row again."""
        return not self.rows and self.position >= self._end

    def ready(self) -> OutboxRow | None:
        """Remove and return the next row if it is in memory, None otherwise."""
        return self.rows.popleft() if self.rows else None

    async def first(self) -> OutboxRow | None:
        """Return the next row on disk without removing it, None if there is none."""
        while not self.rows and self.waits:
            up_to = min(self._outbox.writes.committed_id, self._end)
            self.reading = True
            try:
                rows = await self._outbox.fetch(
                    *(self.position, FETCH_ROWS, up_to, self._lane, self._stream),
                    uplink=self._uplink,
                )
            finally:
                self.reading = False
            # Missing ids up to `up_to` were removed: never query them again.
            self.position = rows[-1].id if rows else up_to
            # Recalled rows have old ids, but are last: only their own cursor returns them.
            self.rows.extend(row for row in rows if self._lane or row.lane != RECALL)
        return self.rows[0] if self.rows else None

    async def next(self) -> OutboxRow | None:
        """Remove and return the next row on disk, None if there is none at the moment."""
        return self.pop() if await self.first() is not None else None

    def pop(self) -> OutboxRow:
        """Remove and return the row that `first` returned."""
        return self.rows.popleft()


class Lanes:
    """Returns the rows of one connection of an uplink, each once.

    Rows that waited when the connection was established are the backlog, as are those that a rule
    puts in the lane `backlog`; everything else is live. In each lane rows of a stream are in order
    of acceptance, and so numbers rise in each stream and lane. Of rows that waited, streams with a
    higher priority come first; equal ones are in order of acceptance. After the backlog come
    messages that the fleet has requested again, the lane `recall`. Live rows are passed in memory
    as they are added (`push`; they are `fresh`), unless there are too many. Then they are read from
    disk, with all later ones until it has caught up. A row whose publisher's answer waits for the
    disk stays until its commit, and those after it.
    """

    __slots__ = (
        "_backlog",
        "_boundary",
        "_fresh_bytes",
        "_live",
        "_not_fresh",
        "_outbox",
        "_recalled",
        "_waited",
        "fresh",
    )

    def __init__(self, outbox: Outbox, uplink: int = 1) -> None:
        self._outbox = outbox
        self._boundary = outbox.bounds.last_id
        self._live = RowCursor(outbox, self._boundary, lane=LIVE, uplink=uplink)
        self._waited = deque(
            [
                RowCursor(outbox, 0, self._boundary, stream=stream, uplink=uplink)
                for stream in streams
            ]
            for streams in outbox.bounds.by_priority()
        )
        self._backlog = RowCursor(outbox, self._boundary, lane=BACKLOG, uplink=uplink)
        self._recalled = RowCursor(outbox, 0, lane=RECALL, uplink=uplink)
        self.fresh: deque[OutboxRow] = deque()
        self._fresh_bytes = 0
        self._not_fresh = 0  # the highest id of a live row that must be read

    def accepts(self, row: OutboxRow) -> bool:
        """Return whether `push` may follow; if not, the row is read when it is on disk."""
        live = self._live
        # Once a row must be read from disk, later ones are read, too: their order stays.
        must_wait = live.position < self._not_fresh or live.rows or live.reading
        if must_wait or len(self.fresh) >= MAX_FRESH_ROWS or self._fresh_bytes >= MAX_FRESH_BYTES:
            self._not_fresh = row.id
            return False
        return True

    def push(self, row: OutboxRow) -> None:
        """Append a live row."""
        self.fresh.append(row)
        self._fresh_bytes += row.size
        # The cursor must not read from disk what is sent from memory.
        self._live.position = row.id

    def next_fresh(self) -> OutboxRow | None:
        """Return the next live row if it is in memory and may be sent, otherwise None."""
        fresh = self.fresh
        if not fresh or (fresh[0].awaits_commit and not self._outbox.writes.may_be_sent(fresh[0])):
            return None
        row = fresh.popleft()
        self._fresh_bytes -= row.size
        return row

    def waited(self, row: OutboxRow) -> bool:
        """Return whether `row` was in the outbox before the connection, or is recalled."""
        return row.id <= self._boundary or row.lane == RECALL

    @property
    def live_waits(self) -> bool:
        """Whether there may be a live row now."""
        return bool(self.fresh) or self._live.waits

    def next_live(self) -> OutboxRow | None:
        """Return the result of `live` if it is already in memory, else None."""
        return self.next_fresh() if self.fresh else self._live.ready()

    def next_waited(self) -> OutboxRow | None:
        """Return the result of `backlog` if no read is needed, else None."""
        # of several streams, each must be read before the next row is known
        cursors = self._waited[0] if self._waited else ()
        return cursors[0].ready() if len(cursors) == 1 else None

    async def live(self) -> OutboxRow | None:
        """Return the next live row that is on disk, None if there is none at the moment.

        Also None while an earlier one waits in memory for its commit.
        """
        return None if self.fresh else await self._live.next()

    @property
    def backlog_waits(self) -> bool:
        """Whether the backlog, or the lane after it, may have another row."""
        if self._waited:
            if self._waited[0][0].rows:
                return True
            if (cursors := self._next_cursors()) is not None:
                return any(cursor.waits for cursor in cursors)
        outbox = self._outbox
        if BACKLOG in outbox.lanes and self._backlog.waits:
            return True
        return outbox.recalled > 0 and self._recalled.waits

    async def backlog(self) -> OutboxRow | None:
        """Return the next row of the backlog, None when there is none at the moment."""
        while (cursors := self._next_cursors()) is not None:
            row = await _first_of(cursors)
            # None although this priority has not ended: a row follows, so a lower one must wait.
            if row is not None or self._next_cursors() is cursors:
                return row
        row = None
        if BACKLOG in self._outbox.lanes and self._backlog.waits:
            row = await self._backlog.next()
        if row is None and self._outbox.recalled > 0 and self._recalled.waits:
            row = await self._recalled.next()
        return row

    def _next_cursors(self) -> list[RowCursor] | None:
        """Return the streams of the highest priority that have rows left."""
        while self._waited and all(cursor.ended for cursor in self._waited[0]):
            self._waited.popleft()
        return self._waited[0] if self._waited else None


async def _first_of(cursors: list[RowCursor]) -> OutboxRow | None:
    """Return the row of several cursors that was accepted first."""
    found: list[tuple[int, RowCursor]] = []
    for cursor in cursors:
        row = await cursor.first()
        if row is not None:
            found.append((row.id, cursor))
    return min(found, key=lambda each: each[0])[1].pop() if found else None

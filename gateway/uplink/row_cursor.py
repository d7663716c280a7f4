"""Reads the rows of one lane or stream ahead, in the order in which they were accepted."""

from collections import deque

from gateway.storage.outbox.lane import RECALL
from gateway.storage.outbox.outbox import Outbox
from gateway.storage.outbox.outbox_row import OutboxRow

FETCH_ROWS = 256
"""Rows read from the outbox at a time."""

WITHOUT_END = 2**62
"""Above every row id that SQLite gives in practice."""


class RowCursor:
    """Returns each row of an uplink with an id above `position` and up to `end` once.

    Without `lane` it reads the rows of all lanes except recalled ones, which only a cursor of
    their own lane returns.
    """

    __slots__ = ("_end", "_lane", "_outbox", "_position", "_reading", "_rows", "_stream", "_uplink")

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
        self._position = position
        self._end = end
        self._lane = lane
        self._stream = stream
        self._uplink = uplink
        self._rows: deque[OutboxRow] = deque()
        self._reading = False

    @property
    def is_read(self) -> bool:
        """Whether the next row is in memory."""
        return bool(self._rows)

    @property
    def waits(self) -> bool:
        """Whether there may be a row now."""
        if self._rows:
            return True
        return self._position < self._end and self._position < self._outbox.committed_id

    def has_passed(self, identifier: int) -> bool:
        """Return whether all up to this id was returned."""
        return not self._rows and not self._reading and self._position >= identifier

    def skip_to(self, identifier: int) -> None:
        """Return nothing up to this id any more."""
        self._position = identifier

    @property
    def ended(self) -> bool:
        """Whether there will never be a row again."""
        return not self._rows and self._position >= self._end

    def ready(self) -> OutboxRow | None:
        """Remove and return the next row if it is in memory, None otherwise."""
        return self._rows.popleft() if self._rows else None

    async def first(self) -> OutboxRow | None:
        """Return the next row on disk without removing it, None if there is none."""
        while not self._rows and self.waits:
            up_to = min(self._outbox.committed_id, self._end)
            self._reading = True
            try:
                rows = await self._outbox.fetch(
                    *(self._position, FETCH_ROWS, up_to, self._lane, self._stream),
                    uplink=self._uplink,
                )
            finally:
                self._reading = False
            self._position = rows[-1].id if rows else up_to
            self._rows.extend(row for row in rows if self._lane or row.lane != RECALL)
        return self._rows[0] if self._rows else None

    async def next(self) -> OutboxRow | None:
        """Remove and return the next row on disk, None if there is none at the moment."""
        return self.pop() if await self.first() is not None else None

    def pop(self) -> OutboxRow:
        """Remove and return the row that `first` returned."""
        return self._rows.popleft()

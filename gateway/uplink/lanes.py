"""In which order rows leave the outbox: live ones first, the backlog behind them."""

from collections import deque

from gateway.storage.lane import BACKLOG, LIVE
from gateway.storage.outbox import Outbox
from gateway.storage.outbox_row import OutboxRow

FETCH_ROWS = 256
"""Rows read from the outbox at a time for each lane."""


class Lanes:
    """Gives the rows of one connection, each once.

    What waited when the connection came up is the backlog, and so is what a rule puts in the
    lane `backlog`; everything else is live. In each lane rows come in the order in which they
    were accepted, and so numbers rise in each stream and lane.
    """

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._boundary = outbox.last_id
        self._live: deque[OutboxRow] = deque()
        self._live_position = outbox.last_id
        self._backlog: deque[OutboxRow] = deque()
        self._backlog_position = 0

    def waited(self, row: OutboxRow) -> bool:
        """Return whether `row` was in the outbox before the connection came up."""
        return row.id <= self._boundary

    async def live(self) -> OutboxRow | None:
        """Return the next live row that is on disk, None when there is none at the moment."""
        if not self._live and self._live_position < self._outbox.committed_id:
            up_to = self._outbox.committed_id
            rows = await self._outbox.fetch(self._live_position, FETCH_ROWS, up_to, LIVE)
            self._live_position = rows[-1].id if rows else up_to
            self._live.extend(rows)
        return self._live.popleft() if self._live else None

    @property
    def backlog_waits(self) -> bool:
        """Whether the backlog may have another row."""
        return bool(self._backlog) or self._backlog_position < self._backlog_end()[0]

    async def backlog(self) -> OutboxRow | None:
        """Return the next row of the backlog, None when there is none at the moment."""
        if not self._backlog:
            up_to, lane = self._backlog_end()
            if self._backlog_position < up_to:
                rows = await self._outbox.fetch(self._backlog_position, FETCH_ROWS, up_to, lane)
                self._backlog_position = rows[-1].id if rows else up_to
                self._backlog.extend(rows)
        return self._backlog.popleft() if self._backlog else None

    def _backlog_end(self) -> tuple[int, str | None]:
        """Return up to which id to look for the backlog now, and in which lane."""
        if self._backlog_position < self._boundary:
            return min(self._outbox.committed_id, self._boundary), None
        if BACKLOG in self._outbox.lanes:
            return self._outbox.committed_id, BACKLOG
        return self._backlog_position, None

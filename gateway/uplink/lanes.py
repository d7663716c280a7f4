"""In which order rows leave the outbox: live ones first, the backlog behind them."""

from collections import deque

from gateway.storage.lane import BACKLOG, LIVE, RECALL
from gateway.storage.outbox import Outbox
from gateway.storage.outbox_row import OutboxRow

FETCH_ROWS = 256
"""Rows read from the outbox at a time for each lane."""


class Lanes:
    """Gives the rows of one connection, each once.

    What waited when the connection came up is the backlog, and so is what a rule puts in the
    lane `backlog`; everything else is live. In each lane rows come in the order in which they
    were accepted, and so numbers rise in each stream and lane. Behind the backlog comes what the
    fleet has asked for again, the lane `recall`.
    """

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._boundary = outbox.last_id
        self._live: deque[OutboxRow] = deque()
        self._live_position = outbox.last_id
        self._backlog: deque[OutboxRow] = deque()
        self._backlog_position = 0
        self._recall: deque[OutboxRow] = deque()
        self._recall_position = 0

    def waited(self, row: OutboxRow) -> bool:
        """Return whether `row` was in the outbox before the connection came up, or is recalled."""
        return row.id <= self._boundary or row.lane == RECALL

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
        """Whether the backlog, or the lane behind it, may have another row."""
        if self._backlog or self._backlog_position < self._backlog_end()[0]:
            return True
        return bool(self._recall) or self._recall_may_have_more

    async def backlog(self) -> OutboxRow | None:
        """Return the next row of the backlog, None when there is none at the moment."""
        if not self._backlog:
            up_to, lane = self._backlog_end()
            if self._backlog_position < up_to:
                rows = await self._outbox.fetch(self._backlog_position, FETCH_ROWS, up_to, lane)
                self._backlog_position = rows[-1].id if rows else up_to
                self._backlog.extend(row for row in rows if row.lane != RECALL)
        return self._backlog.popleft() if self._backlog else await self._recalled()

    @property
    def _recall_may_have_more(self) -> bool:
        outbox = self._outbox
        return outbox.recalled > 0 and self._recall_position < outbox.committed_id

    async def _recalled(self) -> OutboxRow | None:
        """Return the next row of the lane `recall`, None when there is none at the moment."""
        if self._backlog_position < self._backlog_end()[0]:
            return None  # the backlog has more
        if not self._recall and self._recall_may_have_more:
            up_to = self._outbox.committed_id
            rows = await self._outbox.fetch(self._recall_position, FETCH_ROWS, up_to, RECALL)
            self._recall_position = rows[-1].id if rows else up_to
            self._recall.extend(rows)
        return self._recall.popleft() if self._recall else None

    def _backlog_end(self) -> tuple[int, str | None]:
        """Return up to which id to look for the backlog now, and in which lane."""
        if self._backlog_position < self._boundary:
            return min(self._outbox.committed_id, self._boundary), None
        if BACKLOG in self._outbox.lanes:
            return self._outbox.committed_id, BACKLOG
        return self._backlog_position, None

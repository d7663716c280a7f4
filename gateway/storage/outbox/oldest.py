"""Tracks the oldest rows of the outbox: their time, and which would be evicted next."""

import asyncio
import logging
import sqlite3
from collections.abc import Callable

from gateway.storage.outbox.bounds import HEAD_ROWS, OutboxBounds, OutboxStream
from gateway.storage.outbox.reader import OutboxReader

logger = logging.getLogger(__name__)

READ_SECONDS = 1.0
"""Seconds between two reads of the oldest row: a drain deletes it with each commit."""

_OLDEST = "SELECT time FROM outbox ORDER BY id LIMIT 1"


class OldestRows:
    """Reads the head of each stream that may evict rows, and the time of the oldest row.

    `time` is when the oldest row was accepted (ms since 1970), None without rows. After that row is
    deleted, it is updated within READ_SECONDS of the commit. `on_read` is called after each
    successful read. `committed_id` is the highest id on disk.
    """

    def __init__(
        self, reader: OutboxReader, bounds: OutboxBounds, on_read: Callable[[], None]
    ) -> None:
        self.time: int | None = None
        self.committed_id = 0
        self._reader = reader
        self._bounds = bounds
        self._on_read = on_read
        self._is_stale = False
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._read_at = -READ_SECONDS
        self._closed = False

    async def load(self) -> None:
        """Read the rows of an earlier run; raise sqlite3.Error."""
        if self._bounds.rows:
            await self._read_time()
        await self._read_heads()

    def committed(self, committed_id: int, *, removals: bool) -> None:
        """Read if necessary: heads at once, the oldest row within READ_SECONDS.

        Called after each commit, with whether it had deletions: another row may be the oldest then.
        """
        self.committed_id = committed_id
        self._is_stale = self._is_stale or removals
        self.read_soon()

    async def close(self) -> None:
        """End the reads of the database, which may close from now on."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            await self._task

    def read_soon(self) -> None:
        """Read if necessary."""
        if self._task is not None or self._closed:
            return
        loop = asyncio.get_running_loop()
        wait = 0.0
        if self._next_stream() is None:
            if not (self._is_stale and self._bounds.rows):
                return
            wait = self._read_at + READ_SECONDS - loop.time()
        if wait <= 0.0:
            self._read_at = loop.time()
            self._task = loop.create_task(self._read())
        elif self._timer is None:
            self._timer = loop.call_later(wait, self._timer_ended)

    def _timer_ended(self) -> None:
        self._timer = None
        self.read_soon()

    async def _read(self) -> None:
        try:
            if self._is_stale:
                await self._read_time()
            await self._read_heads()
            self._on_read()
        except sqlite3.Error as error:
            logger.warning("the oldest rows of the outbox could not be read: %s", error)
            return  # the next commit tries again
        finally:
            self._task = None
        self.read_soon()  # rows that were committed meanwhile

    async def _read_time(self) -> None:
        """Query the disk; raise sqlite3.Error.

        A row whose deletion is not on disk yet may be found, or none because waiting rows are not
        on disk yet: the next commit reads again.
        """
        self._is_stale = False
        found = await self._reader.read(_OLDEST, (), lambda cursor: cursor.fetchone())
        if found is None:
            self._is_stale = True
        elif self._bounds.rows:
            (self.time,) = found

    async def _read_heads(self) -> None:
        """Read until no stream lacks rows up to the highest id on disk; raise sqlite3.Error."""
        while not self._closed and (stream := self._next_stream()) is not None:
            up_to = self.committed_id
            rows = await self._reader.head(stream.settings.name, stream.known_to, up_to, HEAD_ROWS)
            known_to = rows[-1].id if len(rows) == HEAD_ROWS else up_to
            stream.read_on([row for row in rows if self._reader.shows(row.id)], known_to)

    def _next_stream(self) -> OutboxStream | None:
        """Return a stream that knows few of its oldest rows while there are more on disk."""
        for stream in self._bounds.streams.values():
            if stream.has_head and stream.known_to < self.committed_id and stream.wants_more:
                return stream
        return None

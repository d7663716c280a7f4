"""Asks the database for the oldest rows of the outbox: beside all else, not often."""

import asyncio
import logging
import sqlite3
from collections.abc import Callable

from gateway.storage.outbox.batches import OutboxBatches
from gateway.storage.outbox.reader import OutboxReader
from gateway.storage.outbox.streams.heads import OutboxHeads
from gateway.storage.outbox.streams.streams import OutboxStreams

logger = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
"""Between two looks for the oldest row: a drain removes it with each commit."""

_OLDEST = "SELECT time FROM outbox ORDER BY id LIMIT 1"


class OutboxLooks:
    """Keeps `heads` and `oldest_time` known; `on_looked` is called after each look that succeeded.

    `oldest_time` is when the oldest row was accepted (ms), None when none waits.
    """

    def __init__(
        self,
        reader: OutboxReader,
        heads: OutboxHeads,
        streams: OutboxStreams,
        batches: OutboxBatches,
        on_looked: Callable[[], None],
    ) -> None:
        self.oldest_time: int | None = None
        self._stale = False
        self._reader = reader
        self._heads = heads
        self._streams = streams
        self._batches = batches
        self._on_looked = on_looked
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._looked_at = -LOOK_SECONDS
        self._closed = False

    async def first(self) -> None:
        """Look for the first time; raise sqlite3.Error."""
        if self._streams.rows:
            await self._look_for_oldest()
        await self._heads.read(self._readable)

    def added(self, time: int) -> None:
        """Note that a row comes, which was accepted at `time`."""
        if not self._streams.rows:
            self.oldest_time = time

    def removed(self) -> None:
        """Note that rows have left."""
        if not self._streams.rows:
            self.oldest_time = None

    def committed(self, *, removals: bool) -> None:
        """Look if there is need: for heads at once, for the oldest row within LOOK_SECONDS.

        Called after each commit, with whether it brought removals: the oldest may be another.
        """
        self._stale = self._stale or removals
        self._look_soon()

    def _look_soon(self) -> None:
        if self._task is not None or self._closed:
            return
        loop = asyncio.get_running_loop()
        wait = 0.0
        if not self._heads.lacks(self._batches.committed_id):
            if not (self._stale and self._streams.rows):
                return
            wait = self._looked_at + LOOK_SECONDS - loop.time()
        if wait <= 0.0:
            self._looked_at = loop.time()
            self._task = loop.create_task(self._look())
        elif self._timer is None:
            self._timer = loop.call_later(wait, self._look_later)

    async def close(self) -> None:
        """End the looks into the database, which may close from now on."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            await self._task

    def _readable(self) -> int:
        return 0 if self._closed else self._batches.committed_id

    def _look_later(self) -> None:
        self._timer = None
        self._look_soon()

    async def _look(self) -> None:
        try:
            if self._stale:
                await self._look_for_oldest()
            await self._heads.read(self._readable)
            self._on_looked()
        except sqlite3.Error as error:
            logger.warning("the oldest rows of the outbox could not be read: %s", error)
            return  # after the next commit again
        finally:
            self._task = None
        self._look_soon()  # what was committed meanwhile

    async def _look_for_oldest(self) -> None:
        """Ask the disk; raise sqlite3.Error.

        A row whose removal is not on disk yet may be found: that commit lets look again. If none
        is found, what waits is not on disk yet: so does the next one.
        """
        self._stale = False
        found = await self._reader.read(_OLDEST, (), lambda cursor: cursor.fetchone())
        if found is None:
            self._stale = True
        elif self._streams.rows:
            (self.oldest_time,) = found

"""When the database is asked for the oldest rows of the outbox: beside all else, not often."""

import asyncio
import logging
import sqlite3
from collections.abc import Callable

from gateway.storage.outbox.batches import OutboxBatches
from gateway.storage.outbox.heads import OutboxHeads
from gateway.storage.outbox.oldest_row import OldestRow
from gateway.storage.outbox.streams import OutboxStreams

logger = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
"""Between two looks for the oldest row: a drain removes it with each commit."""


class OutboxLooks:
    """Keeps `oldest` and `heads` known; `on_looked` is called after each look that succeeded."""

    def __init__(
        self,
        oldest: OldestRow,
        heads: OutboxHeads,
        streams: OutboxStreams,
        batches: OutboxBatches,
        on_looked: Callable[[], None],
    ) -> None:
        self._oldest = oldest
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
            await self._oldest.look()
        await self._heads.read(self._readable)

    def look(self) -> None:
        """Look if there is need: for heads at once, for the oldest row within LOOK_SECONDS."""
        if self._task is not None or self._closed:
            return
        loop = asyncio.get_running_loop()
        wait = 0.0
        if not self._heads.lacks(self._batches.committed_id):
            if not self._lacks_oldest:
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

    @property
    def _lacks_oldest(self) -> bool:
        return self._streams.rows > 0 and self._oldest.unknown

    def _readable(self) -> int:
        return 0 if self._closed else self._batches.committed_id

    def _look_later(self) -> None:
        self._timer = None
        self.look()

    async def _look(self) -> None:
        try:
            if self._lacks_oldest:
                await self._oldest.look()
            await self._heads.read(self._readable)
            self._on_looked()
        except sqlite3.Error as error:
            logger.warning("the oldest rows of the outbox could not be read: %s", error)
        finally:
            self._task = None

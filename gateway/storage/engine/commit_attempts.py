"""Writes one batch after the other, each as often as it takes until the disk has it."""

import asyncio
import logging
import sqlite3
from collections.abc import Callable

from gateway.counters import Counters
from gateway.storage.engine.commit_figures import CommitFigures
from gateway.storage.engine.connection import Batch, Connection
from gateway.storage.engine.damage import is_no_room
from gateway.storage.engine.room import Room

logger = logging.getLogger(__name__)

FIRST_RETRY = 0.1
LONGEST_RETRY = 5.0
"""Seconds between two attempts to write a batch that the disk refused; doubled each time."""


class CommitAttempts:
    """Attempts to commit, repeated while the disk refuses and `closing` is not set.

    `failing` is True from the first refusal until the disk takes rows again. `alarm` is called
    with a text when that begins and with "" when it ends, `on_failed` after each refusal. `room`,
    once it is set, is asked for room when the disk is full.
    """

    def __init__(
        self,
        connection: Connection,
        counters: Counters,
        closing: asyncio.Event,
        alarm: Callable[[str], None],
        on_failed: Callable[[], None],
    ) -> None:
        self.failing = False
        self.room: Room | None = None
        self.are_gone: Callable[[], bool] = lambda: False  # asked before and after each commit
        """Whether the files are gone: what is committed to them then must not be acknowledged."""
        self._connection = connection
        self._counters = counters
        self._figures = CommitFigures(counters)
        self._closing = closing
        self._alarm = alarm
        self._on_failed = on_failed

    @property
    def short_of_room(self) -> bool:
        """True while the disk is full: what is gathered gets there, but no more is promised."""
        return self.room is not None and self.room.short

    async def write(self, batch: Batch) -> bool:
        """Try until the batch is on disk; False when `closing` is set and it still is not."""
        delay = FIRST_RETRY
        clock = asyncio.get_running_loop().time
        while True:
            if self.are_gone():
                await self._closing.wait()
                return False
            began = clock()
            try:
                await self._connection.write(batch)
            except (sqlite3.Error, ValueError, OverflowError) as error:
                # ValueError and OverflowError: a value that SQLite cannot hold. Nothing
                # behind it may be acknowledged as if it were stored.
                if await self._made_room(error):
                    continue
                self._failed(error)
            else:
                if self.are_gone():
                    await self._closing.wait()
                    return False
                ended = clock()
                self._figures.count(sum(len(rows) for _, rows in batch), ended - began)
                self._recovered()
                if self.room is not None:
                    await self.room.look(ended)
                return True
            if self._closing.is_set():
                return False
            await self._wait(delay)
            delay = min(2 * delay, LONGEST_RETRY)

    async def _made_room(self, error: Exception) -> bool:
        """Return whether a full disk has some room for one more attempt at once."""
        return self.room is not None and is_no_room(error) and await self.room.make()

    async def _wait(self, delay: float) -> None:
        try:
            await asyncio.wait_for(self._closing.wait(), delay)
        except TimeoutError:
            return

    def _failed(self, error: Exception) -> None:
        self._counters.add("tidegate/storage/failures")
        self._on_failed()
        if not self.failing:
            self.failing = True
            logger.critical("the database takes no more: %s; publishers are refused", error)
            self._alarm(f"the database takes no more: {error}")

    def _recovered(self) -> None:
        if self.failing:
            self.failing = False
            logger.warning("the database takes rows again")
            self._alarm("")

"""Writes one batch after the other, each as often as it takes until the disk has it."""

import asyncio
import logging
import sqlite3
from collections.abc import Callable

from gateway.counters import Counters
from gateway.storage.engine.connection import Batch, Connection
from gateway.storage.engine.damage import is_disk_full
from gateway.storage.engine.free_space import FreeSpace


class CommitFigures:
    """Counts commits under `$SYS/broker/tidegate/storage/`; means are over the whole run."""

    __slots__ = ("_commits", "_counters", "_longest", "_most_rows", "_rows", "_seconds")

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._commits = 0
        self._rows = 0
        self._most_rows = 0
        self._seconds = 0.0
        self._longest = 0.0
        counters.set("tidegate/storage/commits", 0)
        counters.set("tidegate/storage/rows", 0)

    def count(self, rows: int, seconds: float) -> None:
        """Count one commit of so many rows that took so long, with the way to its thread."""
        self._commits += 1
        self._rows += rows
        self._seconds += seconds
        self._most_rows = max(self._most_rows, rows)
        self._longest = max(self._longest, seconds)
        counters = self._counters
        mean = 1000 * self._seconds / self._commits
        counters.set("tidegate/storage/commits", self._commits)
        counters.set("tidegate/storage/rows", self._rows)
        counters.set("tidegate/storage/commit_rows_mean", round(self._rows / self._commits, 1))
        counters.set("tidegate/storage/commit_rows_most", self._most_rows)
        counters.set("tidegate/storage/commit_ms_mean", round(mean, 2))
        counters.set("tidegate/storage/commit_ms_longest", round(1000 * self._longest, 2))


logger = logging.getLogger(__name__)

FIRST_RETRY = 0.1
LONGEST_RETRY = 5.0
"""Seconds between two attempts to write a batch that the disk refused; doubled each time."""


class CommitAttempts:
    """Attempts to commit, repeated while the disk refuses and `closing` is not set.

    `failing` is True from the first refusal until the disk takes rows again. `alarm` is called
    with a text when that begins and with "" when it ends, `on_failed` after each refusal.
    `free_space`, once it is set, makes space when the disk is full.
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
        self.free_space: FreeSpace | None = None
        self.are_gone: Callable[[], bool] = lambda: False  # called before and after each commit
        """Whether the files are gone: what is committed to them then must not be acknowledged."""
        self._connection = connection
        self._counters = counters
        self._figures = CommitFigures(counters)
        self._closing = closing
        self._alarm = alarm
        self._on_failed = on_failed

    @property
    def disk_full(self) -> bool:
        """True while the disk is full: pending rows get there, but no more is promised."""
        return self.free_space is not None and self.free_space.exhausted

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
                if await self._released_reserve(error):
                    continue
                self._failed(error)
            else:
                if self.are_gone():
                    await self._closing.wait()
                    return False
                ended = clock()
                self._figures.count(sum([len(rows) for _, rows in batch]), ended - began)
                self._recovered()
                if self.free_space is not None:
                    await self.free_space.limit_log(ended)
                return True
            if self._closing.is_set():
                return False
            await self._wait(delay)
            delay = min(2 * delay, LONGEST_RETRY)

    async def _released_reserve(self, error: Exception) -> bool:
        """Return whether a full disk has space for one more attempt at once."""
        return (
            self.free_space is not None
            and is_disk_full(error)
            and await self.free_space.release_reserve()
        )

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

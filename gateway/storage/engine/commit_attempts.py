"""Writes one batch after the other, each as often as it takes until the disk has it."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine
from time import monotonic
from typing import Any

from gateway.counters import Counters
from gateway.storage.engine.connection import Batch, Connection
from gateway.storage.engine.damage import is_disk_full
from gateway.storage.engine.free_space import FreeSpace


class CommitFigures:
    """Counts commits under `$SYS/broker/tidegate/storage/`; means are over the whole run."""

    __slots__ = ("_commits", "_longest", "_most_rows", "_rows", "_seconds", "_values")

    def __init__(self, counters: Counters) -> None:
        self._values = counters.values
        self._commits = 0
        self._rows = 0
        self._most_rows = 0
        self._seconds = 0.0
        self._longest = 0.0
        counters.set("tidegate/storage/commits", 0)
        counters.set("tidegate/storage/rows", 0)

    def count(self, rows: int, seconds: float) -> None:
        """Count one commit of so many rows that took so long, with the way to its thread."""
        values = self._values
        self._commits = commits = self._commits + 1
        self._rows += rows
        self._seconds += seconds
        values["tidegate/storage/commits"] = commits
        values["tidegate/storage/rows"] = self._rows
        values["tidegate/storage/commit_rows_mean"] = round(self._rows / commits, 1)
        values["tidegate/storage/commit_ms_mean"] = round(1000 * self._seconds / commits, 2)
        if rows > self._most_rows:
            values["tidegate/storage/commit_rows_most"] = self._most_rows = rows
        if seconds > self._longest:
            self._longest = seconds
            values["tidegate/storage/commit_ms_longest"] = round(1000 * seconds, 2)


logger = logging.getLogger(__name__)

FIRST_RETRY = 0.1
LONGEST_RETRY = 5.0
"""Seconds between two attempts to write a batch that the disk refused; doubled each time."""


ON_DISK, NOT_WRITTEN = True, False
"""How attempts at a batch end."""


class CommitAttempts:
    """Attempts to commit, repeated while the disk refuses and `closing` is not set.

    `failing` is True from the first refusal until the disk takes rows again. `alarm` is called
    with a text when that begins and with "" when it ends, `on_failed` after each refusal, and
    `on_end` when a batch is on disk (True), or `closing` is set and it still is not (False).
    `free_space`, once it is set, makes space when the disk is full.
    """

    def __init__(
        self,
        connection: Connection,
        counters: Counters,
        closing: asyncio.Event,
        alarm: Callable[[str], None],
        on_failed: Callable[[], None],
        on_end: Callable[[bool], None],
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
        self._on_end = on_end
        self._batch: Batch = ()
        self._rows = 0
        self._began = 0.0
        self._delay = FIRST_RETRY
        self._task: asyncio.Task[None] | None = None

    @property
    def disk_full(self) -> bool:
        """True while the disk is full: pending rows get there, but no more is promised."""
        return self.free_space is not None and self.free_space.exhausted

    def begin(self, batch: Batch, rows: int) -> None:
        """Try to write a batch of so many rows until it is on disk."""
        self._batch, self._rows, self._delay = batch, rows, FIRST_RETRY
        self._try()

    def _try(self) -> None:
        # Before the commit, too: SQLite would lengthen a log that was truncated, and hide that.
        if self.are_gone():
            self._go_on(self._give_up())
            return
        self._began = monotonic()
        self._connection.begin_write(self._batch, self._tried)

    def _tried(self, _: None, failure: BaseException | None) -> None:
        if failure is not None:
            self._go_on(self._handle(failure))
        elif self.are_gone():
            self._go_on(self._give_up())
        else:
            ended = monotonic()
            self._figures.count(self._rows, ended - self._began)
            if self.failing:
                self._recovered()
            free_space = self.free_space
            if free_space is not None and free_space.is_log_too_long(ended):
                self._go_on(self._fold_log(free_space))
            else:
                self._on_end(ON_DISK)

    def _go_on(self, what: Coroutine[Any, Any, None]) -> None:
        """Do what takes longer; it ends the attempt, or begins the next."""
        self._task = asyncio.get_running_loop().create_task(what)

    async def _give_up(self) -> None:
        await self._closing.wait()
        self._on_end(NOT_WRITTEN)

    async def _fold_log(self, free_space: FreeSpace) -> None:
        await free_space.fold_log_now()
        self._on_end(ON_DISK)

    async def _handle(self, failure: BaseException) -> None:
        """Make space, or wait, for the next attempt."""
        # Whatever it is, as a value that SQLite cannot hold: nothing behind it may be acknowledged
        # as if it were stored.
        if not await self._released_reserve(failure):
            self._failed(failure)
            if not self._closing.is_set():
                await self._wait()
                self._delay = min(2 * self._delay, LONGEST_RETRY)
            if self._closing.is_set():
                self._on_end(NOT_WRITTEN)
                return
        self._try()

    async def _released_reserve(self, error: BaseException) -> bool:
        """Return whether a full disk has space for one more attempt at once."""
        return (
            self.free_space is not None
            and is_disk_full(error)
            and await self.free_space.release_reserve()
        )

    async def _wait(self) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), self._delay)

    def _failed(self, error: BaseException) -> None:
        self._counters.add("tidegate/storage/failures")
        self._on_failed()
        if not self.failing:
            self.failing = True
            logger.critical("the database takes no more: %s; publishers are refused", error)
            self._alarm(f"the database takes no more: {error}")

    def _recovered(self) -> None:
        self.failing = False
        logger.warning("the database takes rows again")
        self._alarm("")

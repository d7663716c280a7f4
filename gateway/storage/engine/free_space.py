"""Keeps the database writable on a full disk, and returns its free pages to the file system."""

import asyncio
import contextlib
import logging
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from time import monotonic

from gateway.salvage.form import PAGE_BYTES
from gateway.storage.engine.connection import BUSY_TIMEOUT_MS, Connection
from gateway.storage.engine.damage import free_bytes, is_disk_full
from gateway.storage.engine.files import known_log_bytes, log_of

NAME = "reserve"

RESERVE_BYTES = 16 * 1024 * 1024
"""Bytes of the reserve: a write-ahead log of its usual 4 MiB, the pages that it adds to the
database, and a large batch."""

PART_OF_DISK = 16
"""On a small file system the reserve is this fraction of it."""

SMALLEST_RESERVE = 256 * 1024

ANY_BYTES = 1 << 62
"""More than any disk has."""


class Reserve:
    """Space in `<folder>/reserve`: SQLite needs some even to delete rows.

    `release` returns it to the disk, `hold` reserves it again once there is twice as much. `grow`
    reserves more for a long log, until `shrink`.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        self._folder = folder

    @property
    def held_bytes(self) -> int:
        """The bytes that are reserved now."""
        try:
            return os.stat(self._path).st_size  # noqa: PTH116 - a third of the time
        except OSError:
            return 0

    def measure(self) -> tuple[int, int]:
        """Return the free bytes of the disk, ANY_BYTES if unknown, and the size of the reserve."""
        try:
            found = os.statvfs(self._folder)
        except OSError:
            return ANY_BYTES, RESERVE_BYTES
        part = found.f_blocks * found.f_frsize // PART_OF_DISK
        size = max(SMALLEST_RESERVE, min(RESERVE_BYTES, part))
        return found.f_bavail * found.f_frsize, size

    def hold(self) -> bool:
        """Reserve the space if twice as much is free; return whether it is reserved."""
        if self.held_bytes:
            self.shrink()  # a run that was killed may have grown it
            return True
        size = self.measure()[1]
        return free_bytes(self._folder) >= 2 * size and self._allocate(size)

    def grow(self, size: int) -> bool:
        """Have so many bytes reserved at least, if any are; return False if the disk has less."""
        return not 0 < self.held_bytes < size or self._allocate(size)

    def shrink(self) -> None:
        """Return what `grow` has added."""
        size = self.measure()[1]
        with contextlib.suppress(OSError):
            if self.held_bytes > size:
                os.truncate(self._path, size)

    def release(self) -> bool:
        """Return the space to the disk; return whether it was reserved."""
        try:
            self._path.unlink()
        except OSError:
            return False
        return True

    def _allocate(self, size: int) -> bool:
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
        try:
            descriptor = os.open(self._path, flags, 0o640)
            try:
                # allocates the blocks now: a sparse file would reserve nothing
                os.posix_fallocate(descriptor, 0, size)
            finally:
                os.close(descriptor)
        except OSError:
            # part of the space would leave even less for SQLite
            self.release()
            return False
        return True


logger = logging.getLogger(__name__)

RETRY_SECONDS = 1.0
"""Seconds between two attempts to reserve the space again."""

CHECK_SECONDS = 0.01
"""Seconds between two checks before a commit, while more than PLENTY_BYTES is free. Below that each
commit is checked: with checks each 0.1 s a small disk filled up between two."""

PLENTY_BYTES = 256 * 1024 * 1024
"""Any batch fits into so many: COST times the most that is pending."""

CACHE_PART = 8
"""The writer's page cache is this fraction of the reserve, 2 MiB of 16: before a COMMIT at most so
much of a transaction is not in the log yet."""

SPARE_PART = 4
"""This fraction of the reserve is for deleting: a commit that would use it must wait."""

UNCHECKED_PART = 32
"""Pending bytes up to this fraction of the reserve fit into it, whatever else the disk has."""

COST = 4
"""A pending byte takes up to two in the log and two in the database."""

LOGS_FREE = 4
"""A log is folded early if less than this many logs is free beside the reserve. By the next check
it may have grown, and SQLite may have moved all of it into the database, which needs its size once
more."""

LOG_PART = 2
"""So is a log that is longer than this fraction of the reserve: something else may fill the disk at
any time."""

FOLDED_LOG_BYTES = 64 * 1024
"""A log up to this size, or a quarter of a small reserve, is never folded early."""

FULL = "the disk is full: publishers are refused until there is space again"
STUCK = (
    "the disk is full, and what was accepted last does not fit: the gateway restarts without it; it"
    " was not acknowledged, so its publishers send it again"
)

RESERVED_PAGES = 4 * 1024 * 1024 // PAGE_BYTES
"""Free pages that stay in the file (4 MiB): the next rows use them without growing it."""

STEP_PAGES = 256
"""Pages returned in one transaction; a new batch waits for one step at most."""

STEP_PART = 16
"""Such a step is at most this fraction of the reserve: it is written to the log, too."""

CHECKPOINTS = 40
CHECKPOINT_SECONDS = 0.005
"""Attempts, and the seconds between them, at a checkpoint that another connection blocks."""


class FreeSpace:
    """Keeps the database writable when the disk is full.

    The reserve is released then, so that pending rows can still be written, and rows that the fleet
    has acknowledged be deleted. `exhausted` is True from there until the reserve is held again:
    meanwhile publishers are refused, and free pages are returned to the disk. `alarm` is called
    with a text when that begins and with "" when it ends.

    SQLite needs space twice for a new page: in the log, and when the log is folded. So no commit is
    made whose log could not be folded with the reserve, nor one that leaves no space for deleting.
    If an accepted batch does not fit even alone, `restart` is called.
    """

    def __init__(
        self,
        database: Path,
        connection: Connection,
        reserve: Reserve,
        alarm: Callable[[str], None] = lambda text: None,  # noqa: ARG005 - keeps the name
        restart: Callable[[], None] = lambda: None,
    ) -> None:
        self.exhausted = False
        self._usual = reserve.measure()[1]
        self._unchecked = self._usual // UNCHECKED_PART
        self.checked_bytes = self._unchecked
        """Pending bytes for which there was space at the last check."""
        self._log = log_of(database)
        self._next_check = 0.0
        self._longest_log = ANY_BYTES  # a longer one is folded
        self.check_log = False
        """Whether the next commit may make the log too long."""
        self._last_accepted = 0  # the last batch that may have rows of publishers
        self._deletes = False  # whether the next commit may use the spare part
        self._connection = connection
        self._reserve = reserve
        self._alarm = alarm
        self._restart = restart
        connection.before_commit = self.check_commit
        self._task: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Hold the reserve, or be exhausted from the start."""
        await self._pragma(f"cache_size = -{self._usual // CACHE_PART // 1024}")
        if not await self._connection.run(self._reserve.hold):
            self._exhaust(0)

    def begin_batch(self, number: int) -> None:
        """Let a batch, while `exhausted`, use all space if it has no publishers' rows."""
        self._deletes = number > self._last_accepted

    def check_commit(self) -> None:
        """Raise sqlite3.OperationalError, SQLITE_FULL, if the log could not be folded after COMMIT.

        Called in the connection's thread when a transaction is complete.
        """
        self.checked_bytes = self._unchecked  # something else may have taken space meanwhile
        now = monotonic()
        if now < self._next_check:
            return
        free, needed = self._measure(spare=not self._deletes)
        # a log that the usual reserve can fold needs no more
        if free < needed or (needed > self._usual and not self._reserve.grow(needed)):
            error = sqlite3.OperationalError("the log could not be moved into the database")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error
        if free - needed > PLENTY_BYTES:
            self._next_check = now + CHECK_SECONDS

    def fits(self, pending: int) -> bool:
        """Return whether so many pending bytes can be written."""
        free, needed = self._measure(spare=True)
        capacity = (free - needed) // COST
        self.checked_bytes = min(capacity, 2 * pending)
        return pending <= capacity

    def is_log_too_long(self) -> bool:
        """Return whether `fold_log_now` must follow a commit.

        A full disk has no space for the pages that a long log adds to the database, and the log's
        own space is reusable only after they were moved there.
        """
        return known_log_bytes(self._log) > self._longest_log

    async def make_space(self, last_accepted: int) -> None:
        """Release the reserve after a write found no space; publishers are refused from now on.

        `last_accepted` is the batch that is open now.
        """
        self._exhaust(last_accepted)
        await self._connection.run(self._reserve.release)
        await self._fold_log()

    def note_stuck(self, number: int) -> None:
        """Restart the gateway if a batch with publishers' rows prevents those that delete.

        Not if something else takes the space of the reserve: the next run could not delete either.
        Nor if any batch would fit: then the disk refuses for another reason than its space.
        """
        free, size = self._reserve.measure()
        if number <= self._last_accepted and size // 2 <= free < PLENTY_BYTES:
            self._last_accepted = 0  # once
            logger.critical("%s", STUCK)
            self._restart()

    async def fold_log_now(self) -> None:
        """Move the log into the file, unless somebody reads: a commit must not wait for that."""
        await self._pragma("busy_timeout = 0")
        await self._fold_log()
        await self._pragma(f"busy_timeout = {BUSY_TIMEOUT_MS}")

    async def close(self) -> None:
        """Stop trying to hold the reserve."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def _measure(self, *, spare: bool) -> tuple[int, int]:
        """Return the free bytes, with the reserve, and those that COMMIT and folding its log need.

        Those for deleting are among them with `spare`.
        """
        free, size = self._reserve.measure()
        log = known_log_bytes(self._log)  # with what the transaction has written already
        longest = min((free - size) // LOGS_FREE, size // LOG_PART)
        self._longest_log = max(min(FOLDED_LOG_BYTES, size // 4), longest)
        if self.exhausted and not self._deletes:
            self._longest_log = 0  # the next batch may fail after it has filled the disk
        cached = size // CACHE_PART  # written to the log, then to the file
        self.check_log = log + cached > self._longest_log
        if free < PLENTY_BYTES:
            free += self._reserve.held_bytes
        return free, log + 2 * cached + (size // SPARE_PART if spare else 0)

    def _exhaust(self, last_accepted: int) -> None:
        if not self.exhausted:
            self.exhausted = True
            self._last_accepted = last_accepted
            logger.critical("%s", FULL)
            self._alarm(FULL)
            self._task = asyncio.get_running_loop().create_task(self._until_there_is_space())

    async def _until_there_is_space(self) -> None:
        while True:
            await asyncio.sleep(RETRY_SECONDS)
            await self._fold_log()
            step = self._usual // STEP_PART // PAGE_BYTES
            await give_space_back(self._connection, lambda: False, 0, min(STEP_PAGES, step))
            await self._fold_log()
            if await self._connection.run(self._reserve.hold):
                break
        self.exhausted = self._deletes = False
        self._task = None
        logger.warning("the disk has space again")
        self._alarm("")

    async def _fold_log(self) -> None:
        """Move the log into the file, which frees its space; a failure is tried again."""
        with contextlib.suppress(sqlite3.Error):
            await self._pragma("wal_checkpoint(TRUNCATE)")
            await self._connection.run(self._reserve.shrink)

    async def _pragma(self, text: str) -> None:
        await self._connection.query(f"PRAGMA {text}", (), lambda cursor: cursor.fetchall())


async def give_space_back(
    connection: Connection,
    wanted: Callable[[], bool],
    reserved: int = RESERVED_PAGES,
    most: int = STEP_PAGES,
) -> bool:
    """Shrink the file to `reserved` free pages; return False if the writer was `wanted` before.

    It returns at most `most` pages in one transaction.

    Called after a batch when no other waits; it reads one counter in the file's header if there is
    little to return. A failure is logged and left to the next call: no row depends on it.
    """
    shrunk = False
    before = -1
    try:
        while not wanted():
            free = await connection.query("PRAGMA freelist_count", (), _number)
            if free <= reserved:
                return not shrunk or await _checkpoint(connection, wanted)
            if free == before:  # another program created the file without auto_vacuum
                return True
            before = free
            step = min(most, free - reserved)
            # As a script: the statement returns a row without columns for each page, and Python
            # stops anything else after the first.
            await connection.script(f"PRAGMA incremental_vacuum({step})")
            shrunk = True
    except sqlite3.Error as error:
        # the alarm reports a full disk
        level = logging.DEBUG if is_disk_full(error) else logging.WARNING
        logger.log(level, "free pages of the database could not be given back: %s", error)
        return True
    return False


async def _checkpoint(connection: Connection, wanted: Callable[[], bool]) -> bool:
    """Move the log into the file, which shrinks only then; False if that failed.

    A concurrent read blocks this for as long as it takes.
    """
    for _ in range(CHECKPOINTS):
        busy, pages, copied = await connection.query(
            "PRAGMA wal_checkpoint(PASSIVE)", (), lambda cursor: cursor.fetchone()
        )
        if not busy and copied >= pages:
            return True
        if wanted():
            break
        await asyncio.sleep(CHECKPOINT_SECONDS)
    return False


def _number(cursor: sqlite3.Cursor) -> int:
    return int(cursor.fetchone()[0])

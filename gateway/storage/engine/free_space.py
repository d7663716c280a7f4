"""Keeps the database writable on a full disk, and returns its free pages to the file system."""

import asyncio
import contextlib
import logging
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

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

SMALLEST_RESERVE = 64 * 1024


class Reserve:
    """Space in `<folder>/reserve`: SQLite needs some even to delete rows.

    `release` returns it to the disk, `hold` reserves it again once there is twice as much.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        self._folder = folder

    @property
    def is_held(self) -> bool:
        """Return whether the space is reserved now."""
        return self._path.exists()

    def is_scarce(self, needed: int) -> bool:
        """Return whether less than `needed` bytes plus the size of the reserve is free."""
        try:
            found = os.statvfs(self._folder)
        except OSError:
            return False
        return found.f_bavail * found.f_frsize < needed + _size(found)

    def hold(self) -> bool:
        """Reserve the space if twice as much is free; return whether it is reserved."""
        if self.is_held:
            return True
        try:
            size = _size(os.statvfs(self._folder))
            if free_bytes(self._folder) < 2 * size:
                return False
            self._allocate(size)
        except OSError:
            return False
        return True

    def release(self) -> bool:
        """Return the space to the disk; return whether it was reserved."""
        try:
            self._path.unlink()
        except OSError:
            return False
        return True

    def _allocate(self, size: int) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
        descriptor = os.open(self._path, flags, 0o640)
        try:
            # allocates the blocks now: a sparse file would reserve nothing
            os.posix_fallocate(descriptor, 0, size)
        except OSError:
            # part of the space would leave even less for SQLite
            self.release()
            raise
        finally:
            os.close(descriptor)


def _size(disk: os.statvfs_result) -> int:
    """Return the size of the reserve on a disk."""
    part = disk.f_blocks * disk.f_frsize // PART_OF_DISK
    return max(SMALLEST_RESERVE, min(RESERVE_BYTES, part))


logger = logging.getLogger(__name__)

RETRY_SECONDS = 1.0
"""Seconds between two attempts to reserve the space again."""

LOG_CHECK_SECONDS = 0.01
"""Seconds between two checks of the log's size. With 0.1 a small disk filled up between them, and
the log could neither grow nor be folded."""

LOGS_FREE = 4
"""Space is scarce if less than this many logs is free. By the next check this log may have grown,
and SQLite may have moved all of it into the database, which needs its size once more."""

FOLDED_LOG_BYTES = 64 * 1024
"""A smaller log is not truncated while space is scarce."""

FULL = "the disk is full: publishers are refused until there is space again"

RESERVED_PAGES = 4 * 1024 * 1024 // PAGE_BYTES
"""Free pages that stay in the file (4 MiB): the next rows use them without growing it."""

STEP_PAGES = 256
"""Pages returned in one transaction; a new batch waits for one step at most."""

CHECKPOINTS = 40
CHECKPOINT_SECONDS = 0.005
"""Attempts, and the seconds between them, at a checkpoint that another connection blocks."""


class FreeSpace:
    """Keeps the database writable when the disk is full.

    The reserve is released then, so that pending rows can still be written, and rows that the fleet
    has acknowledged be deleted. `exhausted` is True from there until the reserve is held again:
    meanwhile publishers are refused, and free pages are returned to the disk. `alarm` is called
    with a text when that begins and with "" when it ends.
    """

    def __init__(
        self,
        database: Path,
        connection: Connection,
        reserve: Reserve,
        alarm: Callable[[str], None] = lambda text: None,  # noqa: ARG005 - keeps the name
    ) -> None:
        self.exhausted = False
        self._log = log_of(database)
        self._next_check = 0.0
        self._connection = connection
        self._reserve = reserve
        self._alarm = alarm
        self._task: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Hold the reserve, or be exhausted from the start."""
        if not await self._connection.run(self._reserve.hold):
            self._exhaust()

    async def release_reserve(self) -> bool:
        """Release the reserve after a write found no space; return whether to try again at once."""
        released = await self._connection.run(self._reserve.release)
        self._exhaust()
        await self._fold_log()
        return released

    def is_log_too_long(self, now: float) -> bool:
        """Return whether `fold_log_now` must follow a commit that ended at `now` (monotonic).

        A full disk has no space for the pages that a long log adds to the database, and the log's
        own space is reusable only after they were moved there.
        """
        if now < self._next_check:
            return False
        self._next_check = now + LOG_CHECK_SECONDS
        log = known_log_bytes(self._log)
        return log > FOLDED_LOG_BYTES and self._reserve.is_scarce(LOGS_FREE * log)

    async def fold_log_now(self) -> None:
        """Move the log into the file, unless somebody reads: a commit must not wait for that."""
        await self._set_busy_timeout(0)
        await self._fold_log()
        await self._set_busy_timeout(BUSY_TIMEOUT_MS)

    async def close(self) -> None:
        """Stop trying to hold the reserve."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def _exhaust(self) -> None:
        if not self.exhausted:
            self.exhausted = True
            logger.critical("%s", FULL)
            self._alarm(FULL)
            self._task = asyncio.get_running_loop().create_task(self._until_there_is_space())

    async def _until_there_is_space(self) -> None:
        while True:
            await asyncio.sleep(RETRY_SECONDS)
            await give_space_back(self._connection, lambda: False, reserved=0)
            await self._fold_log()
            if await self._connection.run(self._reserve.hold):
                break
        self.exhausted = False
        self._task = None
        logger.warning("the disk has space again")
        self._alarm("")

    async def _fold_log(self) -> None:
        """Move the log into the file, which frees its space; a failure is tried again."""
        with contextlib.suppress(sqlite3.Error):
            await self._connection.query(
                "PRAGMA wal_checkpoint(TRUNCATE)", (), lambda cursor: cursor.fetchall()
            )

    async def _set_busy_timeout(self, milliseconds: int) -> None:
        await self._connection.query(
            f"PRAGMA busy_timeout = {milliseconds}", (), lambda cursor: cursor.fetchall()
        )


async def give_space_back(
    connection: Connection, wanted: Callable[[], bool], reserved: int = RESERVED_PAGES
) -> bool:
    """Shrink the file to `reserved` free pages; return False if the writer was `wanted` before.

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
            step = min(STEP_PAGES, free - reserved)
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

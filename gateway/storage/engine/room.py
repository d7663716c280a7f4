"""What is done about a full disk: room is given up, asked for again, and publishers wait for it."""

import asyncio
import contextlib
import logging
import sqlite3
from collections.abc import Callable
from pathlib import Path

from gateway.storage.engine.connection import Connection
from gateway.storage.engine.database_file import BUSY_TIMEOUT_MS
from gateway.storage.engine.log_file import known_log_bytes, log_of
from gateway.storage.engine.reserve import Reserve
from gateway.storage.engine.vacuum import give_space_back

logger = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
"""Seconds between two looks whether there is room again."""

LOOK_AT_LOG_SECONDS = 0.01
"""Seconds between two looks at the log."""

LOGS_FREE = 4
"""Room is scarce where less is free than so many logs: by the next look this one may have grown,
and SQLite itself may have moved all of it into the database, which needs its size once more."""

FOLDED_LOG_BYTES = 64 * 1024
"""A log of no more than this is left alone while room is scarce."""

FULL = "the disk is full: publishers are refused until there is room again"


class Room:
    """Keeps the database writable when the disk is full.

    The reserve is given up then, so that what was gathered still gets to disk, and so does the
    removal of what the fleet takes. `short` is True from there until the reserve could be held
    again: meanwhile publishers are refused, and free pages go back to the disk. `alarm` is
    called with a text when that begins and with "" when it ends.
    """

    def __init__(
        self,
        database: Path,
        connection: Connection,
        reserve: Reserve,
        alarm: Callable[[str], None] = lambda text: None,  # noqa: ARG005 - keeps the name
    ) -> None:
        self.short = False
        self._log = log_of(database)
        self._next_look = 0.0
        self._connection = connection
        self._reserve = reserve
        self._alarm = alarm
        self._task: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Hold the reserve, or be short of room from the start."""
        if not await self._connection.run(self._reserve.hold):
            self._run_short()

    async def make(self) -> bool:
        """Make what room there is after a write found none; return whether to try at once."""
        released = await self._connection.run(self._reserve.release)
        self._run_short()
        await self._fold_log()
        return released

    async def look(self, now: float) -> None:
        """Keep the log short where room is scarce; called with the loop's time after each commit.

        A full disk has no room any more for the pages that a long log adds to the database, and
        without moving them there its own room cannot be used again.
        """
        if now < self._next_look:
            return
        self._next_look = now + LOOK_AT_LOG_SECONDS
        log = known_log_bytes(self._log)
        if log > FOLDED_LOG_BYTES and self._reserve.is_scarce(LOGS_FREE * log):
            await self._set_patience(0)  # a commit does not wait for who reads
            await self._fold_log()
            await self._set_patience(BUSY_TIMEOUT_MS)

    async def close(self) -> None:
        """Look for room no more."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def _run_short(self) -> None:
        if not self.short:
            self.short = True
            logger.critical("%s", FULL)
            self._alarm(FULL)
            self._task = asyncio.get_running_loop().create_task(self._until_there_is_room())

    async def _until_there_is_room(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await give_space_back(self._connection, lambda: False, keep=0)
            await self._fold_log()
            if await self._connection.run(self._reserve.hold):
                break
        self.short = False
        self._task = None
        logger.warning("the disk has room again")
        self._alarm("")

    async def _fold_log(self) -> None:
        """Move the log into the file, which makes its room free; what fails is tried again."""
        with contextlib.suppress(sqlite3.Error):
            await self._connection.query(
                "PRAGMA wal_checkpoint(TRUNCATE)", (), lambda cursor: cursor.fetchall()
            )

    async def _set_patience(self, milliseconds: int) -> None:
        await self._connection.query(
            f"PRAGMA busy_timeout = {milliseconds}", (), lambda cursor: cursor.fetchall()
        )

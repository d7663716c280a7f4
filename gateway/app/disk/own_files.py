"""Checks each second whether the database's files were removed, and saves their content."""

import asyncio
import logging
import sqlite3

from gateway.app.disk.data_folder import DataFolder
from gateway.app.parts import Run, Storage
from gateway.errors import StartError
from gateway.server.turn import Turn
from gateway.storage.engine.damage import note_damage
from gateway.storage.engine.own_files import OwnFiles, rescue

logger = logging.getLogger(__name__)

CHECK_SECONDS = 1.0
"""Seconds between two checks, beside those after each commit."""

RETRY_SECONDS = 5.0
"""Seconds between two attempts to write them again."""

REPORT_SECONDS = 1.0
"""Seconds between the alarm and the end, so that connected clients receive it."""

RESCUED = "{fault}: all that was in the database is in a new file, and the gateway restarts"
SALVAGED = "{fault}: the gateway restarts, and salvages what can be read"
LOST = "{fault}, and it cannot be written again ({error}): publishers are refused until it can"


def watch_files(run: Run, storage: Storage, folder: DataFolder) -> "FileWatch | None":
    """Return the watcher of the gateway's database files, None if it is in memory.

    It checks for the last time when nothing is written any more, before they are closed.
    """
    if storage.database.in_memory:
        return None
    watch = FileWatch(run, storage, folder)
    run.stack.push_async_callback(watch.close)
    return watch


class FileWatch:
    """Refuses publishers when the files are gone, writes them again, and restarts the gateway.

    Nothing is acknowledged from the first commit on that finds them gone.
    """

    def __init__(self, run: Run, storage: Storage, folder: DataFolder) -> None:
        self.fault = ""
        self._run = run
        self._database, self._writer, _ = storage
        self._folder = folder
        self._files = OwnFiles(self._database.path, self._database.page_bytes)
        self._database.when_closed.append(self._files.close)
        self._saved = asyncio.Lock()
        self._is_saved = False
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, turn: Turn) -> None:
        """Check each second, and before each acknowledgement of a commit."""
        self._writer.attempts.are_cut = self.are_cut
        self._writer.attempts.are_gone = self.are_gone
        self._tasks.append(asyncio.get_running_loop().create_task(self._keep_checking(turn)))

    def are_cut(self) -> bool:
        """Return whether one of the files was truncated, before a commit.

        Deleted and renamed files are found after it, before any acknowledgement.
        """
        return bool(self.fault) or (not self._files.are_whole() and self.check())

    def are_gone(self) -> bool:
        """Return the same after a quick check, as for each commit."""
        return bool(self.fault) or (not self._files.are_unchanged() and self.check())

    def check(self) -> bool:
        """Return whether the files are gone."""
        if not self.fault:
            self.fault = self._files.fault()
            if self.fault:
                logger.critical("%s: publishers are refused", self.fault)
                self._writer.refuses = self.fault
                self._tasks.append(asyncio.get_running_loop().create_task(self._recover()))
        return bool(self.fault)

    async def close(self) -> None:
        """Stop checking; write the files again if they are gone and that was not done."""
        self._writer.attempts.are_cut = self._writer.attempts.are_gone = lambda: False
        self.fault = self.fault or self._files.fault()
        if self.fault:
            await self._save()
        for task in self._tasks:
            task.cancel()

    async def _keep_checking(self, turn: Turn) -> None:
        while not self.check():
            await asyncio.sleep(CHECK_SECONDS)
            turn.now()  # checks the clock, too

    async def _recover(self) -> None:
        is_saved = False
        while not is_saved:
            is_saved = await self._save()
            self._run.alarm("database", self._run.next_alarms["database"])
            await asyncio.sleep(REPORT_SECONDS if is_saved else RETRY_SECONDS)
        self._run.start_anew()

    async def _save(self) -> bool:
        """Write the files again, once; return whether that is done."""
        async with self._saved:
            if not self._is_saved:
                self._is_saved = await self._try_to_save()
            return self._is_saved

    async def _try_to_save(self) -> bool:
        path = self._database.path
        try:
            await asyncio.to_thread(self._folder.hold)  # there may be another folder now, in use
            if self._files.is_truncated:
                text = SALVAGED.format(fault=self.fault)
                done = note_damage(path, self.fault)
            else:
                await rescue(self._database.writer, path, self._run.clock)
                text, done = RESCUED.format(fault=self.fault), True
        except (OSError, sqlite3.Error, StartError) as error:
            text, done = LOST.format(fault=self.fault, error=error), False
        logger.critical("%s", text)
        self._run.next_alarms["database"] = text
        return done

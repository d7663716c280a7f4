"""Looks each second whether somebody took the database away, and saves what was in it."""

import asyncio
import logging
import sqlite3
from typing import TYPE_CHECKING

from gateway.errors import StartError
from gateway.storage.engine.damage import note_damage
from gateway.storage.engine.own_files import OwnFiles
from gateway.storage.engine.rescue import rescue

if TYPE_CHECKING:
    from gateway.app.gateway import Gateway

logger = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
"""Seconds between two looks, beside those after each commit."""

RETRY_SECONDS = 5.0
"""Seconds between two attempts to write them anew."""

TELL_SECONDS = 1.0
"""Between the alarm and the end: whoever is connected hears of it."""

RESCUED = "{fault}: all that was in the database is in a new file, and the gateway starts anew"
SALVAGED = "{fault}: the gateway starts anew, and salvages what can be read"
LOST = "{fault}, and it cannot be written anew ({error}): publishers are refused until it can"


def watch_files(gateway: "Gateway") -> "FileWatch | None":
    """Return what looks after the files of the gateway's database, None if it is in memory.

    It looks for the last time when nothing is written any more, and before they are closed.
    """
    if gateway.database.in_memory:
        return None
    watch = FileWatch(gateway)
    gateway.stack.push_async_callback(watch.close)
    return watch


class FileWatch:
    """Refuses publishers when the files are gone, writes them anew, and starts the gateway anew.

    Nothing is acknowledged from the commit on that finds them gone.
    """

    def __init__(self, gateway: "Gateway") -> None:
        self.fault = ""
        self._gateway = gateway
        self._files = OwnFiles(gateway.database.path, gateway.database.page_bytes)
        gateway.database.when_closed.append(self._files.close)
        self._saved = asyncio.Lock()
        self._is_saved = False
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Look each second, and before what a commit promises."""
        self._gateway.writer.attempts.are_gone = self.look
        self._tasks.append(asyncio.get_running_loop().create_task(self._run()))

    def look(self) -> bool:
        """Return whether the files are gone."""
        if not self.fault:
            self.fault = self._files.fault()
            if self.fault:
                logger.critical("%s: publishers are refused", self.fault)
                self._gateway.writer.refuses = self.fault
                self._tasks.append(asyncio.get_running_loop().create_task(self._recover()))
        return bool(self.fault)

    async def close(self) -> None:
        """Look no more; write the files anew if they are gone and nobody has done so."""
        self._gateway.writer.attempts.are_gone = lambda: False
        self.fault = self.fault or self._files.fault()
        if self.fault:
            await self._save()
        for task in self._tasks:
            task.cancel()

    async def _run(self) -> None:
        while not self.look():
            await asyncio.sleep(LOOK_SECONDS)
            self._gateway.turn.now()  # looks at the clock, too

    async def _recover(self) -> None:
        is_saved = False
        while not is_saved:
            is_saved = await self._save()
            self._gateway.telemetry.alarm("database", self._gateway.next_alarms["database"])
            await asyncio.sleep(TELL_SECONDS if is_saved else RETRY_SECONDS)
        self._gateway.start_anew()

    async def _save(self) -> bool:
        """Write the files anew, once; return whether that is done."""
        async with self._saved:
            if not self._is_saved:
                self._is_saved = await self._try_to_save()
            return self._is_saved

    async def _try_to_save(self) -> bool:
        gateway = self._gateway
        path = gateway.database.path
        try:
            await asyncio.to_thread(gateway.folder.hold)  # another one may be there, in use
            if self._files.is_truncated:
                text = SALVAGED.format(fault=self.fault)
                done = note_damage(path, self.fault)
            else:
                await rescue(gateway.database.writer, path, gateway.clock)
                text, done = RESCUED.format(fault=self.fault), True
        except (OSError, sqlite3.Error, StartError) as error:
            text, done = LOST.format(fault=self.fault, error=error), False
        logger.critical("%s", text)
        gateway.next_alarms["database"] = text
        return done

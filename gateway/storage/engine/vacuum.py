"""Gives free pages of the database back to the file system, a little at a time."""

import asyncio
import logging
import sqlite3
from collections.abc import Callable

from gateway.salvage.form import PAGE_BYTES
from gateway.storage.engine.connection import Connection
from gateway.storage.engine.damage import is_no_room

logger = logging.getLogger(__name__)

KEEP_FREE_PAGES = 4 * 1024 * 1024 // PAGE_BYTES
"""Free pages that stay in the file (4 MiB): the next rows use them without growing it."""

STEP_PAGES = 256
"""Pages given back in one transaction; a new batch waits for one step at most."""

CHECKPOINTS = 40
CHECKPOINT_SECONDS = 0.005
"""How often, and seconds apart, a checkpoint is tried that another connection holds up."""


async def give_space_back(
    connection: Connection, wanted: Callable[[], bool], keep: int = KEEP_FREE_PAGES
) -> bool:
    """Shrink the file to `keep` free pages; return False if the writer was `wanted` before.

    Called after a batch when no other waits; one look at a counter in the file's header if
    there is little to give. A failure is logged and left to the next call: no row depends
    on it.
    """
    shrunk = False
    before = -1
    try:
        while not wanted():
            free = await connection.query("PRAGMA freelist_count", (), _number)
            if free <= keep:
                return not shrunk or await _checkpoint(connection, wanted)
            if free == before:  # another program made the file, which gives nothing back
                return True
            before = free
            step = min(STEP_PAGES, free - keep)
            # As a script: the statement has a row without columns for each page, and Python
            # ends anything else after the first of them.
            await connection.script(f"PRAGMA incremental_vacuum({step})")
            shrunk = True
    except sqlite3.Error as error:
        level = logging.DEBUG if is_no_room(error) else logging.WARNING  # the alarm says it
        logger.log(level, "free pages of the database could not be given back: %s", error)
        return True
    return False


async def _checkpoint(connection: Connection, wanted: Callable[[], bool]) -> bool:
    """Bring what the log has to the file, which alone shrinks it; False if that did not work out.

    A read that is under way at the same time holds the log for as long as it takes.
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

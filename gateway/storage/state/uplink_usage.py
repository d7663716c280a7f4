"""What the uplink has used of a day's budget, and whether its session may be resumed."""

import logging
import sqlite3
from typing import Any

from gateway.storage.engine.database import Database
from gateway.storage.engine.writer import Writer
from gateway.storage.state.note import CLEAR, is_noted, note, note_of

DAY, USED = "uplink_budget_day", "uplink_budget_used"
"""The names in `meta`: the day as date.toordinal counts, and its bytes."""

COMMIT_WITHIN = 10.0
"""Seconds after which a number is on disk at the latest; a crash loses later changes."""

_SAVE = (
    "INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"
)
_READ = "SELECT name, value FROM meta WHERE name IN (?, ?)"


class UplinkUsage:
    """One day and its bytes in the table `meta`, for the only uplink or one of several."""

    def __init__(self, database: Database, writer: Writer, uplink: str = "") -> None:
        self._day, self._used = note_of(DAY, uplink), note_of(USED, uplink)
        self._database = database
        self._writer = writer
        self._saved = (0, 0)

    async def load(self) -> tuple[int, int]:
        """Return the day and its bytes, zeros without any."""
        rows: list[Any] = await self._database.reader.query(
            _READ, (self._day, self._used), sqlite3.Cursor.fetchall
        )
        values = dict(rows)
        self._saved = values.get(self._day, 0), values.get(self._used, 0)
        return self._saved

    def save(self, day: int, used: int) -> None:
        """Write the numbers with a later batch, unless they are unchanged."""
        if (day, used) == self._saved:
            return
        self._saved = day, used
        self._writer.add(_SAVE, (self._day, day), commit_within=COMMIT_WITHIN)
        self._writer.add(_SAVE, (self._used, used), commit_within=COMMIT_WITHIN)
        self._writer.hand_over()


logger = logging.getLogger(__name__)

RESUMABLE = "uplink_session"
"""Exists from a stop without unacknowledged messages to the next start."""


async def pop_resumable(database: Database, uplink: str = "") -> bool:
    """Return whether the last run left a session that may be resumed, and forget it.

    It is deleted on disk when this returns: after a crash nobody knows which messages the session
    still waits for. If the disk does not accept that, the next session starts clean.
    """
    name = note_of(RESUMABLE, uplink)
    if not await is_noted(database, name):
        return False
    try:
        await database.writer.write([(CLEAR, [(name,)])])
    except sqlite3.Error as error:
        logger.warning("the session at the fleet's broker starts clean: %s", error)
        return False
    return True


def note_resumable(writer: Writer, uplink: str = "") -> None:
    """Write the note that the session may be resumed."""
    note(writer, note_of(RESUMABLE, uplink))

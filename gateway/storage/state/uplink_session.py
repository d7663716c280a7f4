"""Whether the session at the fleet's broker may be resumed by the next run."""

import logging
import sqlite3

from gateway.storage.engine.database import Database
from gateway.storage.engine.writer import Writer
from gateway.storage.state.note import CLEAR, is_noted, note, note_of

logger = logging.getLogger(__name__)

RESUMABLE = "uplink_session"
"""The note that is there from a stop with nothing unanswered to the next start."""


async def take_resumable(database: Database, uplink: str = "") -> bool:
    """Return whether the last run left a session that may be resumed, and forget it.

    It is forgotten on disk when this returns: after a crash nobody knows which messages the session
    still waits for. Where the disk does not take that, the next session starts clean.
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


def leave_resumable(writer: Writer, uplink: str = "") -> None:
    """Gather the note that the session may be resumed."""
    note(writer, note_of(RESUMABLE, uplink))

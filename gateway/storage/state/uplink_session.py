"""Whether the session at the fleet's broker may be resumed by the next run."""

import logging
import sqlite3

from gateway.storage.engine.database import Database
from gateway.storage.engine.writer import Writer

logger = logging.getLogger(__name__)

RESUMABLE = "uplink_session"
"""The name in `meta` that is there from a stop with nothing unanswered to the next start."""

_SET = "INSERT INTO meta (name, value) VALUES (?, 1) ON CONFLICT DO NOTHING"
_CLEAR = "DELETE FROM meta WHERE name = ?"
_READ = "SELECT count(*) FROM meta WHERE name = ?"


async def take_resumable(database: Database) -> bool:
    """Return whether the last run left a session that may be resumed, and forget it.

    It is forgotten on disk when this returns: after a crash nobody knows which messages the session
    still waits for. Where the disk does not take that, the next session starts clean.
    """
    query = database.writer.query
    if not await query(_READ, (RESUMABLE,), lambda cursor: cursor.fetchone()[0]):
        return False
    try:
        await database.writer.write([(_CLEAR, [(RESUMABLE,)])])
    except sqlite3.Error as error:
        logger.warning("the session at the fleet's broker starts clean: %s", error)
        return False
    return True


def leave_resumable(writer: Writer) -> None:
    """Gather the note that the session may be resumed."""
    writer.add(_SET, (RESUMABLE,))

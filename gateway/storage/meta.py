"""Single numbers that the gateway remembers of itself."""

import sqlite3

from gateway.errors import StartError
from gateway.storage.database import Database

_COUNT_START = (
    "INSERT INTO meta (name, value) VALUES (?, 1) ON CONFLICT DO UPDATE SET value = value + 1"
)


async def count_start(database: Database) -> int:
    """Count this start of the gateway, on disk when it returns, and return its number from 1.

    Raises StartError when the disk does not take it.
    """
    try:
        await database.writer.write([(_COUNT_START, [("starts",)])])
    except sqlite3.Error as error:
        raise StartError(f"{database.path}: {error}") from error
    statement = "SELECT value FROM meta WHERE name = ?"
    return await database.writer.query(statement, ("starts",), lambda cursor: cursor.fetchone()[0])

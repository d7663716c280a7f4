"""Single numbers that the gateway remembers of itself."""

from gateway.storage.engine.connection import Batch
from gateway.storage.engine.database import Database

COUNT_START: Batch = [
    (
        "INSERT INTO meta (name, value) VALUES (?, 1) ON CONFLICT DO UPDATE SET value = value + 1",
        [("starts",)],
    )
]
"""The first rows of a gateway: on disk before anything else of this start is."""


async def start_number(database: Database) -> int:
    """Return how many starts were counted."""
    statement = "SELECT value FROM meta WHERE name = ?"
    return await database.writer.query(statement, ("starts",), lambda cursor: cursor.fetchone()[0])

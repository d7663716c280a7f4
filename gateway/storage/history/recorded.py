"""Whether an earlier start of the gateway left anything of a history."""

from gateway.storage.engine.database import Database

KEEP = "history_keep"
"""The name in `meta` of the configured seconds, 0 when history is off."""

_REMAINS = (
    "SELECT EXISTS (SELECT 1 FROM meta WHERE name = ? AND value > 0)"
    " OR EXISTS (SELECT 1 FROM history) OR EXISTS (SELECT 1 FROM history_rules)"
    " OR EXISTS (SELECT 1 FROM history_subscriptions)"
)


async def is_recorded(database: Database) -> bool:
    """Return whether there is something to delete where history is off; raise sqlite3.Error."""
    query = database.writer.query
    return await query(_REMAINS, (KEEP,), lambda cursor: bool(cursor.fetchone()[0]))

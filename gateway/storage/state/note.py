"""A note on disk that is there or not, for what a later run has to know."""

from gateway.storage.engine.database import Database
from gateway.storage.engine.writer import Writer

SET = "INSERT INTO meta (name, value) VALUES (?, 1) ON CONFLICT DO NOTHING"
CLEAR = "DELETE FROM meta WHERE name = ?"
_READ = "SELECT count(*) FROM meta WHERE name = ?"


def note_of(name: str, part: str) -> str:
    """Return the name of a note for an uplink or a channel; an uplink that is alone has none."""
    return f"{name}/{part}" if part else name


async def is_noted(database: Database, name: str) -> bool:
    """Return whether a note of this name is on disk."""
    query = database.writer.query
    return bool(await query(_READ, (name,), lambda cursor: cursor.fetchone()[0]))


def note(writer: Writer, name: str, *, there: bool = True) -> None:
    """Gather the note, or its end, for the next commit."""
    writer.add(SET if there else CLEAR, (name,))

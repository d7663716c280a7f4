"""A note on disk that exists or not, for a later run."""

from gateway.storage.engine.database import Database
from gateway.storage.engine.writer import Writer

SET = "INSERT INTO meta (name, value) VALUES (?, 1) ON CONFLICT DO NOTHING"
CLEAR = "DELETE FROM meta WHERE name = ?"
_READ = "SELECT count(*) FROM meta WHERE name = ?"
_READ_PARTS = "SELECT substr(name, ?) FROM meta WHERE substr(name, 1, ?) = ?"


def note_of(name: str, part: str) -> str:
    """Return the name of a note for a part, such as a channel; an only uplink has none."""
    return f"{name}/{part}" if part else name


async def is_noted(database: Database, name: str) -> bool:
    """Return whether a note of this name is on disk."""
    query = database.writer.query
    return bool(await query(_READ, (name,), lambda cursor: cursor.fetchone()[0]))


async def noted_parts(database: Database, name: str) -> list[str]:
    """Return the parts with a note of this name on disk."""
    start, query = f"{name}/", database.writer.query
    parameters = (len(start) + 1, len(start), start)
    return [part for (part,) in await query(_READ_PARTS, parameters, lambda rows: [*rows])]


def note(writer: Writer, name: str, *, there: bool = True) -> None:
    """Write or delete the note with the next commit."""
    writer.add(SET if there else CLEAR, (name,))

"""Notes in the database for a later run: flags by name, and the board that made the data."""

from collections.abc import Mapping

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


FORGET_BOARD = "DELETE FROM meta WHERE substr(name, 1, 6) = 'board/'"
_READ_BOARD = "SELECT substr(name, 7), value FROM meta WHERE substr(name, 1, 6) = 'board/'"
_SAVE_BOARD = "INSERT INTO meta (name, value) VALUES ('board/' || ?, ?)"


async def noted_board(database: Database) -> dict[str, int]:
    """Return the noted hash of each property of the board."""
    return dict(await database.writer.query(_READ_BOARD, (), lambda cursor: cursor.fetchall()))


def note_board(writer: Writer, board: Mapping[str, int]) -> None:
    """Write the properties of the board, in place of those noted before."""
    writer.add(FORGET_BOARD, ())
    for name, value in board.items():
        writer.add(_SAVE_BOARD, (name, value))

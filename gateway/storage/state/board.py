"""Identifies the board on which the data was made, so that a copy elsewhere is detected."""

from collections.abc import Mapping

from gateway.storage.engine.database import Database
from gateway.storage.engine.writer import Writer

FORGET = "DELETE FROM meta WHERE substr(name, 1, 6) = 'board/'"
_READ = "SELECT substr(name, 7), value FROM meta WHERE substr(name, 1, 6) = 'board/'"
_SAVE = "INSERT INTO meta (name, value) VALUES ('board/' || ?, ?)"


async def noted_board(database: Database) -> dict[str, int]:
    """Return the noted hash of each property of the board."""
    return dict(await database.writer.query(_READ, (), lambda cursor: cursor.fetchall()))


def note_board(writer: Writer, board: Mapping[str, int]) -> None:
    """Write the properties of the board, in place of those noted before."""
    writer.add(FORGET, ())
    for name, value in board.items():
        writer.add(_SAVE, (name, value))

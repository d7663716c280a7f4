"""Reads for whoever asks, in a thread of its own: no commit waits for them."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gateway.storage.engine.connection import Connection, Row

if TYPE_CHECKING:
    import aiosqlite

BUSY_SECONDS = 5.0
"""Seconds to wait for a lock, which a reader of a write-ahead log hardly ever meets."""


class QueryConnection:
    """A connection that only reads, opened with the first query.

    What is in memory alone is read by its one connection, `in_memory`.
    """

    def __init__(
        self,
        path: Path,
        in_memory: Connection | None,
        on_error: Callable[[sqlite3.Error], None],
    ) -> None:
        self._path = path
        self._in_memory = in_memory
        self._on_error = on_error
        self._connection: aiosqlite.Connection | None = None

    async def rows(self, statement: str, row: Row = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a statement; raise sqlite3.Error."""
        if self._in_memory is not None:
            return await self._in_memory.query(statement, row, sqlite3.Cursor.fetchall)
        if self._connection is None:
            import aiosqlite  # for those who ask

            uri = f"{self._path.absolute().as_uri()}?mode=ro"
            self._connection = await aiosqlite.connect(
                uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None
            )
        try:
            found = await self._connection.execute_fetchall(statement, row)
        except sqlite3.Error as error:
            self._on_error(error)
            raise
        return [tuple(each) for each in found]

    async def close(self) -> None:
        """Close it; the next query opens it anew."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

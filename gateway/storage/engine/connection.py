"""A connection to SQLite in a thread of its own, with one hop for each batch and each query."""

import sqlite3
from collections.abc import Callable, Sequence
from typing import TypeVar, cast

import aiosqlite

from gateway.storage.engine.many_rows import execute_many

Row = tuple[object, ...]
Batch = Sequence[tuple[str, Sequence[Row]]]
T = TypeVar("T")

CHUNK_ROWS = 64
"""Rows that aiosqlite's own cursors fetch at a time."""


class Connection(aiosqlite.Connection):
    """An aiosqlite connection that does a whole transaction, or a whole query, in its thread.

    aiosqlite's own methods take a hop between the threads for each statement, five for a
    batch; a hop wakes the loop, and a batch is written at the end of nearly every turn.
    """

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        super().__init__(connect, CHUNK_ROWS)
        self.on_error: Callable[[sqlite3.Error], None] | None = None
        """Called on the loop's thread with each error of SQLite before it is raised."""
        self._thread.daemon = True  # a start that fails half way must not keep the process alive

    async def write(self, batch: Batch) -> None:
        """Execute (statement, rows) pairs in order in one transaction and commit it.

        Raises sqlite3.Error with nothing of the batch done.
        """
        await self._in_thread(lambda: _write(self._conn, batch))

    async def query(self, statement: str, row: Row, take: Callable[[sqlite3.Cursor], T]) -> T:
        """Return what `take` made, in the connection's thread, of the statement's cursor."""
        return await self._in_thread(lambda: _query(self._conn, statement, row, take))

    async def run(self, call: Callable[[], T]) -> T:
        """Return what `call` made in the connection's thread, between two of its transactions."""
        return await self._in_thread(call)

    async def _in_thread(self, call: Callable[[], T]) -> T:
        try:
            result = await self._execute(call)  # type: ignore[no-untyped-call]  # not annotated there
        except sqlite3.Error as error:
            if self.on_error is not None:
                self.on_error(error)
            raise
        return cast("T", result)


def _write(connection: sqlite3.Connection, batch: Batch) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        for statement, rows in batch:
            execute_many(connection, statement, rows)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # some errors have already rolled it back
            connection.execute("ROLLBACK")
        raise


def _query(
    connection: sqlite3.Connection, statement: str, row: Row, take: Callable[[sqlite3.Cursor], T]
) -> T:
    cursor = connection.execute(statement, row)
    try:
        return take(cursor)
    finally:
        cursor.close()  # a statement left open would hold its snapshot, and the WAL would grow

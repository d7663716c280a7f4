"""A connection to SQLite in a thread of its own, with one hop for each batch and each query."""

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar, cast

from gateway.storage.engine.many_rows import execute_many

Row = tuple[object, ...]
Batch = Sequence[tuple[str, Sequence[Row]]]
Call = Callable[[], Any]
T = TypeVar("T")


class Connection:
    """Does one call after the other in its thread: a whole transaction, or a whole query.

    `connect` opens the database there. What a call raises is raised where it is awaited.
    """

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self.on_error: Callable[[sqlite3.Error], None] | None = None
        """Called on the loop's thread with each error of SQLite before it is raised."""
        self._connect = connect
        self._connection = cast("sqlite3.Connection", None)  # until `open`, in its own thread
        self._calls: SimpleQueue[tuple[Call, asyncio.Future[Any]] | None] = SimpleQueue()
        self._open = False

    async def open(self) -> None:
        """Start the thread and connect; raise sqlite3.Error."""
        # As a daemon: a start that fails half way, or a disk that hangs, must not keep the process
        # alive when everything else has ended.
        Thread(target=self._work, name="sqlite", daemon=True).start()
        self._open = True
        try:
            self._connection = await self.run(self._connect)
        except BaseException:
            self._end()
            raise

    async def close(self) -> None:
        """Do what was asked for before, then close the database; nothing the second time."""
        if self._open:
            closed = self.run(self._connection.close)
            self._end()
            await closed

    async def write(self, batch: Batch) -> None:
        """Execute (statement, rows) pairs in order in one transaction and commit it.

        Raises sqlite3.Error with nothing of the batch done.
        """
        await self.run(lambda: _write(self._connection, batch))

    async def query(self, statement: str, row: Row, take: Callable[[sqlite3.Cursor], T]) -> T:
        """Return what `take` made, in the connection's thread, of the statement's cursor."""
        return await self.run(lambda: _query(self._connection, statement, row, take))

    async def script(self, statements: str) -> None:
        """Execute statements whose rows nobody wants."""
        await self.run(lambda: self._connection.executescript(statements))

    def run(self, call: Callable[[], T]) -> "asyncio.Future[T]":
        """Return what `call` made in the connection's thread, between two of its transactions."""
        if not self._open:
            raise sqlite3.ProgrammingError("the connection is closed")
        future = asyncio.get_running_loop().create_future()
        self._calls.put((call, future))
        return future

    def _end(self) -> None:
        self._open = False
        self._calls.put(None)

    def _work(self) -> None:
        while (each := self._calls.get()) is not None:
            call, future = each
            result: Any = None
            failure: BaseException | None = None
            try:
                result = call()
            except BaseException as error:  # noqa: BLE001 - raised again where it is awaited
                failure = error
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                future.get_loop().call_soon_threadsafe(self._settle, future, result, failure)

    def _settle(
        self, future: "asyncio.Future[Any]", result: object, failure: BaseException | None
    ) -> None:
        if isinstance(failure, sqlite3.Error) and self.on_error is not None:
            self.on_error(failure)
        if future.cancelled():
            return
        if failure is None:
            future.set_result(result)
        else:
            future.set_exception(failure)


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

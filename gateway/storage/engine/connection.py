"""A connection to SQLite in its own thread, with one thread switch for each batch and query."""

import asyncio
import os
import select
import sqlite3
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar, cast

from gateway.storage.engine.many_rows import execute_many

BUSY_TIMEOUT_MS = 5_000
"""How long a connection waits for another's lock; a checkpoint holds it briefly."""

Row = tuple[object, ...]
Batch = Sequence[tuple[str, Sequence[Row]]]
Call = Callable[[], Any]
T = TypeVar("T")

Done = Callable[[Any, BaseException | None], None]
"""Called on the loop's thread with a call's result and its exception."""

Serve = Callable[[int, "Connection", int], None]
"""`SocketSelector.serve`: calls `ready` when a descriptor is ready for these events, if any."""


class Connection:
    """Runs one call after another in its thread: a whole transaction, or a whole query.

    `connect` opens the database there. An exception of a call is raised where it is awaited.
    """

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self.on_error: Callable[[sqlite3.Error], None] | None = None
        """Called on the loop's thread with each error of SQLite before it is raised."""
        self.before_commit: Call = lambda: None
        """Called in the thread before each COMMIT; an exception rolls the transaction back."""
        self._connect = connect
        self._connection = cast("sqlite3.Connection", None)  # until `open`, in its own thread
        self._calls: SimpleQueue[tuple[Call, Done] | None] = SimpleQueue()
        self._ended: deque[tuple[Done, Any, BaseException | None]] = deque()
        self._loop = cast("asyncio.AbstractEventLoop", None)  # until `open`
        # A daemon: a start that fails half way, or a disk that hangs, must not keep the process
        # alive.
        self._thread = Thread(target=self._work, name="sqlite", daemon=True)
        self._open = False
        self._event = -1  # a descriptor that the thread makes ready
        self._serve: Serve | None = None

    async def open(self) -> None:
        """Start the thread and connect; raise sqlite3.Error."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()
        self._open = True
        try:
            self._connection = await self.run(self._connect)
        except BaseException:
            # without it, the thread would wait for calls for ever
            self._end()
            raise

    def wake_through(self, serve: Serve) -> None:
        """Let the loop's selector report the end of a call, without asyncio.

        asyncio's way from one thread to another takes one more round of the loop for each commit.
        """
        self._event = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._serve = serve
        serve(self._event, self, select.EPOLLIN)

    async def close(self) -> None:
        """Finish earlier calls, then close the database; a second call does nothing."""
        if not self._open:
            return
        closed = self.run(self._connection.close)
        self._end()
        await closed
        if self._serve is not None:
            self._thread.join()  # its calls are done; it only makes the descriptor ready
            self._serve(self._event, self, 0)
            os.close(self._event)

    async def write(self, batch: Batch) -> None:
        """Execute (statement, rows) pairs in order in one transaction and commit it.

        Raises sqlite3.Error with nothing of the batch done.
        """
        await self.run(partial(self.commit, batch))

    def begin_write(self, batch: Batch, done: Done) -> None:
        """Do the same as `write`, and call `done` with None and the exception."""
        self._submit(partial(self.commit, batch), done)

    def commit(self, batch: Batch) -> None:
        """Do the same as `write`; for the connection's own thread."""
        connection = self._connection
        cursor = connection.cursor()  # one for all: making one costs as much as a statement
        execute = cursor.execute
        # IMMEDIATE: the write lock is awaited before the first row, not between rows
        execute("BEGIN IMMEDIATE")
        try:
            for statement, rows in batch:
                if len(rows) == 1:
                    execute(statement, rows[0])
                else:
                    execute_many(cursor, statement, rows)
            self.before_commit()
            execute("COMMIT")
        except BaseException:
            if connection.in_transaction:  # some errors have already rolled it back
                execute("ROLLBACK")
            raise
        finally:
            cursor.close()

    async def query(self, statement: str, row: Row, fetch: Callable[[sqlite3.Cursor], T]) -> T:
        """Return the result of `fetch` for the statement's cursor.

        It runs in the connection's thread.
        """
        return await self.run(lambda: _query(self._connection, statement, row, fetch))

    async def script(self, statements: str) -> None:
        """Execute statements and ignore their rows."""
        await self.run(lambda: self._connection.executescript(statements))

    def run(self, call: Callable[[], T]) -> "asyncio.Future[T]":
        """Return the result of `call`, run in the connection's thread between transactions."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        def settle(result: T, failure: BaseException | None) -> None:
            if future.cancelled():
                return
            if failure is None:
                future.set_result(result)
            else:
                future.set_exception(failure)

        self._submit(call, settle)
        return future

    def _submit(self, call: Call, done: Done) -> None:
        if not self._open:
            raise sqlite3.ProgrammingError("the connection is closed")
        self._calls.put((call, done))

    def _end(self) -> None:
        self._open = False
        self._calls.put(None)

    def _work(self) -> None:
        # No bound on `_calls`: the writer has one call in progress, and so has each reader.
        while (each := self._calls.get()) is not None:
            call, done = each
            result: Any = None
            failure: BaseException | None = None
            try:
                result = call()
            except BaseException as error:  # noqa: BLE001 - raised again where it is awaited
                failure = error
            # Before the signal: `ready` handles all calls that have ended by then.
            self._ended.append((done, result, failure))
            if self._event >= 0:
                os.eventfd_write(self._event, 1)
            else:
                with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                    self._loop.call_soon_threadsafe(self._report)

    def ready(self, _events: int) -> None:
        """Report the calls that have ended; called by the selector passed to `wake_through`."""
        os.eventfd_read(self._event)
        self._report()

    def _report(self) -> None:
        while self._ended:
            done, result, failure = self._ended.popleft()
            if isinstance(failure, sqlite3.Error) and self.on_error is not None:
                self.on_error(failure)
            done(result, failure)


def _query(
    connection: sqlite3.Connection, statement: str, row: Row, fetch: Callable[[sqlite3.Cursor], T]
) -> T:
    cursor = connection.execute(statement, row)
    try:
        return fetch(cursor)
    finally:
        cursor.close()  # an open statement would hold its snapshot, and the WAL would grow

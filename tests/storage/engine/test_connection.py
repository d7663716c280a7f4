"""Calls are done in order in the connection's thread, and nobody is left waiting."""

import asyncio
import sqlite3
import threading
from functools import partial

import pytest

from gateway.storage.engine.connection import Connection


async def _opened() -> Connection:
    connection = Connection(lambda: sqlite3.connect(":memory:", isolation_level=None))
    await connection.open()
    return connection


async def test_calls_are_done_in_order_in_one_other_thread() -> None:
    connection = await _opened()
    done: list[int] = []
    calls = [connection.run(partial(done.append, number)) for number in range(100)]
    await asyncio.gather(*calls)
    assert done == list(range(100))
    threads = {await connection.run(threading.get_ident) for _ in range(3)}
    assert len(threads) == 1
    assert threads != {threading.get_ident()}
    await connection.close()


async def test_an_error_is_raised_where_it_is_awaited_and_sqlite_s_is_told_before() -> None:
    connection = await _opened()
    reported: list[sqlite3.Error] = []
    connection.on_error = reported.append
    with pytest.raises(ZeroDivisionError):
        await connection.run(lambda: 1 // 0)
    with pytest.raises(sqlite3.OperationalError) as raised:
        await connection.query("SELECT * FROM nowhere", (), list)
    assert reported == [raised.value]
    assert await connection.query("SELECT 1", (), list) == [(1,)]
    await connection.close()


async def test_what_was_asked_for_is_done_before_the_end_and_nothing_after_it() -> None:
    connection = await _opened()
    before = connection.run(lambda: 7)
    await connection.close()
    assert await before == 7
    await connection.close()
    with pytest.raises(sqlite3.ProgrammingError, match="the connection is closed"):
        await connection.query("SELECT 1", (), list)


async def test_who_stops_waiting_takes_nothing_from_others() -> None:
    connection = await _opened()
    held = threading.Event()
    first = connection.run(held.wait)
    second = connection.run(lambda: 2)
    first.cancel()
    held.set()
    assert await second == 2
    await connection.close()


async def test_a_database_that_cannot_be_opened_ends_the_thread() -> None:
    before = threading.active_count()
    connection = Connection(lambda: sqlite3.connect("/nowhere/at/all"))
    with pytest.raises(sqlite3.OperationalError, match="unable to open"):
        await connection.open()
    for thread in threading.enumerate():
        if thread.name == "sqlite":
            thread.join(60)
    assert threading.active_count() <= before

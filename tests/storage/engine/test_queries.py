"""Reads beside the writer: what is committed is seen, nothing is written, errors are looked at."""

import sqlite3
from pathlib import Path

import pytest

from gateway.storage.engine.connection import Connection
from gateway.storage.engine.queries import QueryConnection


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a b#.db"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE t (x INTEGER)")
        connection.execute("INSERT INTO t VALUES (1), (2)")
    connection.close()
    return path


async def test_it_reads_what_is_committed_and_writes_nothing(file: Path) -> None:
    errors: list[sqlite3.Error] = []
    queries = QueryConnection(file, None, errors.append)
    assert await queries.rows("SELECT x FROM t WHERE x > ?", (1,)) == [(2,)]
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        await queries.rows("DELETE FROM t")
    assert len(errors) == 1
    with sqlite3.connect(file) as other:
        other.execute("INSERT INTO t VALUES (3)")
    other.close()
    assert await queries.rows("SELECT count(*) FROM t") == [(3,)]
    await queries.close()
    assert await queries.rows("SELECT count(*) FROM t") == [(3,)]
    await queries.close()
    await queries.close()


async def test_what_is_in_memory_is_read_by_its_one_connection(tmp_path: Path) -> None:
    connection = Connection(lambda: sqlite3.connect(":memory:"))
    await connection.open()
    queries = QueryConnection(tmp_path / "none.db", connection, lambda _: None)
    assert await queries.rows("SELECT 7") == [(7,)]
    await queries.close()
    await connection.close()

"""The two connections: their settings, and what each of them sees."""

import sqlite3
from pathlib import Path

import pytest

from gateway.clock import Clock
from gateway.storage.engine.connection import Connection
from gateway.storage.engine.database import QueryConnection, open_database
from gateway.storage.engine.migrations.migrate import migrations


async def _pragma(folder: Path, name: str, connection: str = "writer") -> object:
    database = await open_database(folder, Clock())
    try:
        query = getattr(database, connection).query
        return await query(f"PRAGMA {name}", (), lambda cursor: cursor.fetchone()[0])
    finally:
        await database.close()


@pytest.mark.uncovered
@pytest.mark.parametrize(
    ("connection", "name", "value"),
    [
        ("writer", "auto_vacuum", 2),
        ("writer", "journal_mode", "wal"),
        ("writer", "synchronous", 2),
        ("writer", "foreign_keys", 1),
        ("writer", "user_version", migrations()[-1][0]),
        ("reader", "query_only", 1),
    ],
)
async def test_settings(tmp_path: Path, connection: str, name: str, value: object) -> None:
    assert await _pragma(tmp_path, name, connection) == value
    assert await _pragma(tmp_path, name, connection) == value  # also of a file that was there


async def test_the_reader_sees_nothing_of_a_transaction_before_its_commit(tmp_path: Path) -> None:
    database = await open_database(tmp_path, Clock())
    count = "SELECT count(*) FROM meta"
    await database.writer.query("BEGIN IMMEDIATE", (), list)
    await database.writer.query("INSERT INTO meta VALUES ('x', 1)", (), list)
    assert await database.reader.query(count, (), lambda cursor: cursor.fetchone()[0]) == 0
    await database.writer.query("COMMIT", (), list)
    assert await database.reader.query(count, (), lambda cursor: cursor.fetchone()[0]) == 1
    await database.close()


async def test_a_batch_that_fails_leaves_nothing(tmp_path: Path) -> None:
    database = await open_database(tmp_path, Clock())
    insert = "INSERT INTO meta VALUES (?, ?)"
    with pytest.raises(sqlite3.IntegrityError):
        await database.writer.write([(insert, [("a", 1), ("b", 2)]), (insert, [("a", 3)])])
    await database.writer.write([(insert, [("a", 4)])])
    rows = await database.reader.query("SELECT * FROM meta", (), lambda cursor: cursor.fetchall())
    assert rows == [("a", 4)]
    await database.close()


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

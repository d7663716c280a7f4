"""A database of an earlier version comes along, each version once and as a whole."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest

from gateway.errors import StartError
from gateway.storage.engine.damage import DamagedError
from gateway.storage.engine.migrations import migrate as module
from gateway.storage.engine.migrations.migrate import check_schema, differences, migrate, migrations

RELEASED = {
    "0001_first.sql": "de7ae8e444f6d64abdb8f1ce1e3b2614e7030b6884b8e60cb955a53c10aebde8",
    "0002_origins.sql": "ae7fbe84a997f561fe0c07d5709b6fa7a489af7d711cefbbb26025150c29b86d",
    "0003_rejected.sql": "ec1d26e9ab7cf1b979334761d938108a126a6f8f23f0f28a046b09c44069f4bf",
}
"""The hash of each migration that some gateway may have applied: what it says is for ever."""

NEXT = len(migrations()) + 1
MADE_UP = (NEXT, "ALTER TABLE meta ADD COLUMN more TEXT; UPDATE meta SET more = 'm' || value;")


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    opened = sqlite3.connect(":memory:", isolation_level=None)
    migrate(opened)
    opened.execute("INSERT INTO meta (name, value) VALUES ('starts', 3)")
    yield opened
    opened.close()


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _with(monkeypatch: pytest.MonkeyPatch, *more: tuple[int, str]) -> None:
    known = migrations()
    monkeypatch.setattr(module, "migrations", lambda: [*known, *more])


def test_what_a_version_adds_comes_once(
    connection: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (_version(connection), differences(connection)) == (NEXT - 1, [])
    _with(monkeypatch, MADE_UP)
    assert differences(connection) == ["meta"]
    for _ in range(2):
        migrate(connection)
        assert connection.execute("SELECT * FROM meta").fetchall() == [("starts", 3, "m3")]
        assert (_version(connection), differences(connection)) == (NEXT, [])


def test_a_statement_that_is_not_the_migrations_differs(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE of_somebody (x)")
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute("UPDATE sqlite_schema SET sql = sql || char(10) WHERE name = 'meta'")
    assert differences(connection) == []
    index = "history_subscriptions_until"
    whole = "sql = replace(sql, 'WHERE', char(0) || 'HERE')"
    connection.execute(f"UPDATE sqlite_schema SET {whole} WHERE name = ?", (index,))
    assert differences(connection) == [index]


def test_what_is_another_program_s_is_damaged(connection: sqlite3.Connection) -> None:
    with closing(sqlite3.connect(":memory:")) as other:
        other.execute("CREATE TABLE moz_places (id INTEGER PRIMARY KEY)")
        for version in (0, NEXT - 1, NEXT):
            other.execute(f"PRAGMA user_version = {version}")
            with pytest.raises(DamagedError):
                check_schema(other)


def test_a_version_that_fails_leaves_the_one_before(
    connection: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    _with(monkeypatch, MADE_UP, (NEXT + 1, "UPDATE meta SET value = 4; SELECT * FROM nowhere;"))
    with pytest.raises(sqlite3.OperationalError, match="nowhere"):
        migrate(connection)
    connection.execute("ROLLBACK")
    assert _version(connection) == NEXT
    assert connection.execute("SELECT * FROM meta").fetchall() == [("starts", 3, "m3")]


def test_a_newer_version_is_refused(
    connection: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_schema(connection)
    with monkeypatch.context() as patched:
        _with(patched, MADE_UP)
        migrate(connection)
    with pytest.raises(
        StartError, match=rf"version {NEXT}, this Tidegate supports up to {NEXT - 1}"
    ):
        check_schema(connection)


def test_a_released_migration_is_never_edited() -> None:
    """A change of the schema is a file with the next number, and a line above."""
    folder = Path(module.__file__).parent
    found = {file.name: sha256(file.read_bytes()).hexdigest() for file in folder.glob("*.sql")}
    assert {name: found.get(name) for name in RELEASED} == RELEASED
    assert all(name > max(RELEASED) for name in found.keys() - RELEASED.keys())
    assert sorted(int(name[:4]) for name in found) == list(range(1, len(found) + 1))

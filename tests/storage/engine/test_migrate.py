"""A database of an earlier version comes along, each version once and as a whole."""

import sqlite3
from collections.abc import Iterator

import pytest

from gateway.errors import StartError
from gateway.storage.engine.migrations import migrate as module
from gateway.storage.engine.migrations.migrate import (
    migrate,
    migrations,
    missing_columns,
    refuse_newer,
)

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
    assert (_version(connection), missing_columns(connection)) == (NEXT - 1, [])
    _with(monkeypatch, MADE_UP)
    assert missing_columns(connection) == ["meta.more"]
    for _ in range(2):
        migrate(connection)
        assert connection.execute("SELECT * FROM meta").fetchall() == [("starts", 3, "m3")]
        assert (_version(connection), missing_columns(connection)) == (NEXT, [])


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
    refuse_newer(connection)
    with monkeypatch.context() as patched:
        _with(patched, MADE_UP)
        migrate(connection)
    with pytest.raises(StartError, match=rf"version {NEXT}, this Tidegate knows up to {NEXT - 1}"):
        refuse_newer(connection)

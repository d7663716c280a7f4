import sqlite3
from collections.abc import Iterator

import pytest

from gateway.storage.engine.migrations.migrate import migrate
from gateway.storage.state.daily_writes import (
    KEEP_DAYS,
    MS_OF_A_DAY,
    Written,
    note_written,
    written,
)


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate(connection)
    yield connection
    connection.close()


def note(connection: sqlite3.Connection, day: int, more: Written) -> None:
    note_written(connection.execute, day * MS_OF_A_DAY + 5, more)


def test_notes_of_the_last_days_add_up(connection: sqlite3.Connection) -> None:
    note(connection, 20_000, Written(1000, 3, 600))
    note(connection, 20_000, Written(500, 1, 600))
    note(connection, 20_001, Written(10, 1, 30))
    assert written(connection) == Written(1510, 5, 1230)


def test_old_days_are_forgotten(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO meta (name, value) VALUES ('starts', 7)")
    note(connection, 20_000, Written(1000, 3, 600))
    note(connection, 20_000 + KEEP_DAYS - 1, Written(1, 1, 1))
    assert written(connection) == Written(1001, 4, 601)
    note(connection, 20_000 + KEEP_DAYS, Written(1, 1, 1))
    assert written(connection) == Written(2, 2, 2)
    assert connection.execute("SELECT value FROM meta WHERE name = 'starts'").fetchone() == (7,)


def test_nothing_was_written_yet(connection: sqlite3.Connection) -> None:
    assert written(connection) == Written(0, 0, 0)

import sqlite3
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.storage.engine.many_rows import (
    FEWER_ROWS_AT_ONCE,
    ROWS_AT_ONCE,
    execute_many,
    insert_statement,
)

STATEMENTS = [
    insert_statement("a", ("x", "y")),
    "INSERT INTO a (x, y) VALUES (?, ?)",
    "INSERT OR REPLACE INTO a VALUES (?, ?)",
    "INSERT INTO a VALUES (?, ?) ON CONFLICT DO UPDATE SET y = excluded.y",
    "REPLACE INTO a VALUES (?, ?)",
]


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    opened = sqlite3.connect(":memory:", isolation_level=None)
    opened.execute("CREATE TABLE a (x INTEGER PRIMARY KEY, y)")
    yield opened
    opened.close()


COUNTS = pytest.mark.parametrize(
    "count",
    [
        *(0, 1, FEWER_ROWS_AT_ONCE - 1, FEWER_ROWS_AT_ONCE, 2 * FEWER_ROWS_AT_ONCE + 1),
        *(ROWS_AT_ONCE - 1, ROWS_AT_ONCE, 2 * ROWS_AT_ONCE + FEWER_ROWS_AT_ONCE + 1),
    ],
)


def content(connection: sqlite3.Connection) -> list[tuple[object, ...]]:
    return connection.execute("SELECT x, y FROM a ORDER BY x").fetchall()


@COUNTS
@pytest.mark.parametrize("statement", STATEMENTS)
def test_every_row_is_inserted_once(
    connection: sqlite3.Connection, statement: str, count: int
) -> None:
    rows = [(number, b"%d" % number) for number in range(count)]
    execute_many(connection.cursor(), statement, rows)
    assert content(connection) == rows


@pytest.mark.parametrize("statement", STATEMENTS[2:])
def test_the_last_row_of_a_key_stays(connection: sqlite3.Connection, statement: str) -> None:
    execute_many(connection.cursor(), statement, [(number % 5, number) for number in range(99)])
    assert content(connection) == [(0, 95), (1, 96), (2, 97), (3, 98), (4, 94)]


def test_other_statements_are_executed_row_by_row(connection: sqlite3.Connection) -> None:
    execute_many(connection.cursor(), STATEMENTS[0], [(number, 0) for number in range(99)])
    execute_many(connection.cursor(), "UPDATE a SET y = ? WHERE x = ?", [(n, n) for n in range(50)])
    deletions = [(n, n) for n in range(40)]
    execute_many(connection.cursor(), "DELETE FROM a WHERE x BETWEEN ? AND ?", deletions)
    execute_many(connection.cursor(), "DELETE FROM a WHERE x > 50", [()])
    assert content(connection) == [*((n, n) for n in range(40, 50)), (50, 0)]


@COUNTS
@pytest.mark.parametrize(("literal", "value"), [("0", 0), ("NULL", None)])
def test_literals_stand_in_every_row(
    connection: sqlite3.Connection, count: int, literal: str, value: int | None
) -> None:
    statement = f"INSERT INTO a (x, y) VALUES (?, {literal})"
    steps: list[str] = []
    connection.set_trace_callback(steps.append)
    execute_many(connection.cursor(), statement, [(number,) for number in range(count)])
    many, left = divmod(count, ROWS_AT_ONCE)
    assert len(steps) == many + left // FEWER_ROWS_AT_ONCE + left % FEWER_ROWS_AT_ONCE
    assert content(connection) == [(number, value) for number in range(count)]


@pytest.mark.parametrize("statement", STATEMENTS[:4])
def test_steps_are_few(connection: sqlite3.Connection, statement: str) -> None:
    steps: list[str] = []
    connection.set_trace_callback(steps.append)
    execute_many(connection.cursor(), statement, [(n, n) for n in range(3 * ROWS_AT_ONCE + 2)])
    assert len(steps) == 3 + 2


def test_a_wide_row_stays_within_what_sqlite_takes(connection: sqlite3.Connection) -> None:
    names = [f"c{number}" for number in range(40)]
    connection.execute(f"CREATE TABLE wide ({', '.join(names)})")
    execute_many(connection.cursor(), insert_statement("wide", tuple(names)), [tuple(names)] * 99)
    assert connection.execute("SELECT count(*) FROM wide").fetchone() == (99,)


@pytest.mark.parametrize("place", [0, ROWS_AT_ONCE - 1, ROWS_AT_ONCE, 3 * ROWS_AT_ONCE + 1])
@pytest.mark.parametrize("value", [1 << 63, object(), "\ud800"])
def test_what_sqlite_cannot_hold_is_an_error_wherever_it_stands(
    connection: sqlite3.Connection, place: int, value: object
) -> None:
    rows: list[tuple[object, ...]] = [(n, n) for n in range(4 * ROWS_AT_ONCE - 1)]
    rows[place] = (place, value)
    with pytest.raises((sqlite3.Error, ValueError, OverflowError)):
        execute_many(connection.cursor(), STATEMENTS[0], rows)


@pytest.mark.uncovered
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 20), st.binary(max_size=3)), max_size=150))
def test_rows_come_in_order(connection: sqlite3.Connection, rows: list[tuple[int, bytes]]) -> None:
    connection.execute("DELETE FROM a")
    execute_many(connection.cursor(), STATEMENTS[2], rows)
    assert content(connection) == sorted(dict(rows).items())

"""Rows go whose rows elsewhere are lost, and with them those that refer to them."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from gateway.salvage.insert import drop_leftovers

SCHEMA = """
CREATE TABLE message (id INTEGER PRIMARY KEY);
CREATE TABLE session (name TEXT, place INTEGER, PRIMARY KEY (name, place));
CREATE TABLE delivery (message INTEGER, name TEXT, place INTEGER,
    FOREIGN KEY (name, place) REFERENCES session (name, place));
CREATE TABLE answer (of INTEGER REFERENCES delivery (rowid));
CREATE TABLE alone (id INTEGER PRIMARY KEY);
INSERT INTO message VALUES (1), (2);
INSERT INTO session VALUES ('a', 1), ('b', 1);
INSERT INTO alone VALUES (1);
"""


@pytest.fixture
def database() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.executescript(SCHEMA)
        yield connection


def left(database: sqlite3.Connection) -> list[tuple[object, ...]]:
    return database.execute("SELECT * FROM delivery ORDER BY rowid").fetchall()


def dropped(database: sqlite3.Connection) -> dict[str, int]:
    counts: dict[str, int] = {}
    drop_leftovers(database, counts)
    return counts


def test_where_nothing_is_lost_nothing_goes(database: sqlite3.Connection) -> None:
    database.execute("INSERT INTO delivery VALUES (1, 'a', 1), (NULL, 'b', 1), (2, NULL, 1)")
    assert dropped(database) == {}
    assert len(left(database)) == 3


def test_by_a_declared_reference_and_by_the_name_of_a_table(database: sqlite3.Connection) -> None:
    database.execute("INSERT INTO delivery VALUES (1, 'a', 2), (3, 'a', 1), (2, 'b', 1)")
    assert dropped(database) == {"delivery": 2}
    assert left(database) == [(2, "b", 1)]


def test_what_refers_to_what_goes_goes_too(database: sqlite3.Connection) -> None:
    database.execute("INSERT INTO delivery VALUES (3, 'a', 1), (2, 'b', 1)")
    database.execute("INSERT INTO answer VALUES (1), (2)")
    assert dropped(database) == {"delivery": 1, "answer": 1}

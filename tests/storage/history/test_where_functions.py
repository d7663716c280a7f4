import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from gateway.storage.history.reader import register_where_functions
from tests.support.table import table


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as connection:
        register_where_functions(connection)
        yield connection


@table(
    ("call", "value"),
    [
        ("where_number('12')", 12),
        ("where_number('1e3')", 1000.0),
        ("where_number('12abc')", None),
        ("where_number(NULL)", None),
        ("where_text(x'e6b8a9')", "温"),
        ("where_text(x'ff')", None),
        ("where_text(NULL)", None),
        ("where_payload(CAST('{\"a\":[1,2.0]}' AS BLOB), '[\"a\",1]')", 2.0),
        ('where_payload(CAST(\'{"a":1,"a":"x"}\' AS BLOB), \'["a"]\')', "x"),
        ("where_payload(CAST('[true]' AS BLOB), '[0]')", b"\x01"),
        ("where_payload(CAST('[false]' AS BLOB), '[0]')", b"\x00"),
        ("where_payload(CAST('[{}]' AS BLOB), '[0]')", b"\x02"),
        ("where_payload(CAST('[null]' AS BLOB), '[0]')", None),
        ("where_payload(CAST('{a:1}' AS BLOB), '[\"a\"]')", None),
        ('where_user(\'[["k","1"],["k","2"]]\', \'k\')', "2"),
        ("where_user(NULL, 'k')", None),
        ("where_bare('[[\"k\",\"1\"]]', CAST('{\"k\":2}' AS BLOB), 'k')", "1"),
        ("where_bare('[[\"j\",\"1\"]]', CAST('{\"k\":2}' AS BLOB), 'k')", 2),
        ("where_topic_level('/a', 0)", ""),
        ("where_topic_level('/a', 2)", None),
        ("where_topic_matches('a/b', '+/b/#')", 1),
        ("where_topic_matches('$SYS/b', '+/b')", 0),
        ("where_remainder(-7.5, 2)", -1.5),
        ("where_length('a' || char(0) || 'b')", 3),
        ("where_substr('abcd', 2, 2)", "bc"),
        ("where_like('50%', '__!%')", 1),
        ("where_like(NULL, '%')", None),
    ],
)
def test_function(connection: sqlite3.Connection, call: str, value: object) -> None:
    assert connection.execute(f"SELECT {call}").fetchone() == (value,)


def test_each_row_is_read_anew(connection: sqlite3.Connection) -> None:
    rows = [('[["k","1"]]', b'{"a":1}'), (None, b'{"a":1}'), (None, b'{"a":2}')]
    connection.execute("CREATE TABLE rows (properties, payload)")
    connection.executemany("INSERT INTO rows VALUES (?, ?)", rows)
    query = "SELECT where_user(properties, 'k'), where_payload(payload, '[\"a\"]') FROM rows"
    assert connection.execute(query).fetchall() == [("1", 1), (None, 1), (None, 2)]

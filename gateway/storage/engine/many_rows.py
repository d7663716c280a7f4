"""Many rows with few steps of SQLite: one INSERT of many rows, one DELETE of a range.

Python's sqlite3 releases the interpreter's lock and acquires it again around each step of a
statement, and `executemany` makes a step for each row. An INSERT of many rows is one step: that
takes a third of the time, and far less of it from the event loop's thread.
"""

import re
import sqlite3
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from itertools import chain

Row = tuple[object, ...]

ROWS_AT_ONCE = 32
"""Rows of one INSERT; more were measured to be no faster."""

FEWER_ROWS_AT_ONCE = 8
"""Rows of one INSERT if fewer than ROWS_AT_ONCE are left, as in most batches of connections."""

MOST_VALUES = 999
"""Parameters of a statement that every SQLite accepts (SQLITE_MAX_VARIABLE_NUMBER before 3.32)."""

KNOWN_STATEMENTS = 128
"""Cached wide forms of statements: enough for all of them."""

_INSERT = re.compile(
    r"(INSERT (?:OR REPLACE )?INTO [^?]* VALUES )(\( ?(?:\?|0|NULL)(?:, (?:\?|0|NULL))* ?\))"
    r"((?: ON CONFLICT [^?]*)?)"
)


def insert_statement(table: str, columns: tuple[str, ...]) -> str:
    """Return the INSERT of a row with the values of `columns`, as `execute_many` widens it."""
    places = ", ".join("?" * len(columns))
    return " ".join(("INSERT INTO", table, "(", ", ".join(columns), ") VALUES (", places, ")"))


def execute_many(cursor: sqlite3.Cursor, statement: str, rows: Sequence[Row]) -> None:
    """Execute `statement` with each of `rows` in order; raise sqlite3.Error for the first."""
    count, done = len(rows), 0
    for at_once in (ROWS_AT_ONCE, FEWER_ROWS_AT_ONCE):
        wide = _widened(statement, at_once) if count - done >= at_once else None
        while wide is not None and count - done >= at_once:
            part = rows[done : done + at_once]
            cursor.execute(wide, tuple(chain.from_iterable(part)))
            done += at_once
    if done < count:
        cursor.executemany(statement, rows[done:])


@lru_cache(KNOWN_STATEMENTS)
def _widened(statement: str, at_once: int) -> str | None:
    """Return an INSERT of one row as one of `at_once` rows, None for any other statement."""
    match = _INSERT.fullmatch(statement)
    if match is None or match[2].count("?") * at_once > MOST_VALUES:
        return None
    return match[1] + ", ".join([match[2]] * at_once) + match[3]


Range = tuple[int, int]
"""First and last number."""


def ranges_of(numbers: Collection[int]) -> list[Range]:
    """Return the rising ranges that consist of `numbers`, all different."""
    if numbers:
        first, last = min(numbers), max(numbers)
        if last - first + 1 == len(numbers):  # usually: no sorting
            return [(first, last)]
    return joined((number, number) for number in numbers)


def joined(ranges: Iterable[Range]) -> list[Range]:
    """Return ranges in rising order, adjacent ones joined."""
    found: list[Range] = []
    for first, last in sorted(ranges):
        if found and first == found[-1][1] + 1:
            found[-1] = found[-1][0], last
        else:
            found.append((first, last))
    return found

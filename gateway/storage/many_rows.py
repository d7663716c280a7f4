"""Many rows with few steps of SQLite.

Python's sqlite3 gives up the interpreter's lock and takes it again around each step of a
statement, and `executemany` makes a step for each row. An INSERT of many rows is one step: that
takes a third of the time, and far less of it from the event loop's thread.
"""

import re
import sqlite3
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain

Row = tuple[object, ...]

ROWS_AT_ONCE = 32
"""Rows of one INSERT; more were measured to be no faster."""

MOST_VALUES = 999
"""Values of a statement that every SQLite takes (SQLITE_MAX_VARIABLE_NUMBER before 3.32)."""

KNOWN_STATEMENTS = 64
"""Statements whose wide form is remembered, which is all of them; of others it is made anew."""

_INSERT = re.compile(
    r"(INSERT (?:OR REPLACE )?INTO [^?]* VALUES )(\( ?(?:\?|0|NULL)(?:, (?:\?|0|NULL))* ?\))"
)


def execute_many(connection: sqlite3.Connection, statement: str, rows: Sequence[Row]) -> None:
    """Execute `statement` with each of `rows` in order; raise sqlite3.Error for the first."""
    wide = _widened(statement) if len(rows) >= ROWS_AT_ONCE else None
    done = 0
    if wide is not None:
        for done in range(ROWS_AT_ONCE, len(rows) + 1, ROWS_AT_ONCE):
            part = rows[done - ROWS_AT_ONCE : done]
            connection.execute(wide, tuple(chain.from_iterable(part)))
    connection.executemany(statement, rows[done:])


@lru_cache(KNOWN_STATEMENTS)
def _widened(statement: str) -> str | None:
    """Return an INSERT of one row as one of ROWS_AT_ONCE, None for any other statement."""
    match = _INSERT.fullmatch(statement)
    if match is None or match[2].count("?") * ROWS_AT_ONCE > MOST_VALUES:
        return None
    return match[1] + ", ".join([match[2]] * ROWS_AT_ONCE)

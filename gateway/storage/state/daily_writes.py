"""How much the gateway wrote on each of its last days, stored in `meta`."""

import sqlite3
from collections.abc import Callable
from typing import NamedTuple

MS_OF_A_DAY = 86_400_000

KEEP_DAYS = 8
"""Days that are stored: a week, and the present one."""

WRITTEN, COMMITS, RUNNING = "written.", "commits.", "running."
"""Names in `meta`, each followed by the day's number since 1970: bytes, commits, seconds of it."""

_ADD = (
    "INSERT INTO meta (name, value) VALUES (?, ?)"
    " ON CONFLICT DO UPDATE SET value = value + excluded.value"
)
_FORGET = "DELETE FROM meta WHERE name GLOB ? AND CAST(substr(name, ?) AS INTEGER) <= ?"
_READ = "SELECT name, value FROM meta WHERE name GLOB ?"


class Written(NamedTuple):
    """What was written in `seconds` of running: bytes as Linux counts them, and commits."""

    written: int
    commits: int
    seconds: int


def note_written(add: Callable[[str, tuple[object, ...]], object], now: int, more: Written) -> None:
    """Write rows that add `more` to the day of `now` (ms since 1970), and delete old days."""
    day = now // MS_OF_A_DAY
    for beginning, value in (
        (WRITTEN, more.written),
        (COMMITS, more.commits),
        (RUNNING, more.seconds),
    ):
        add(_ADD, (f"{beginning}{day}", value))
        add(_FORGET, (f"{beginning}*", len(beginning) + 1, day - KEEP_DAYS))


def written(connection: sqlite3.Connection) -> Written:
    """Return the sum over the stored days."""

    def total(beginning: str) -> int:
        return sum(value for _, value in connection.execute(_READ, (f"{beginning}*",)))

    return Written(total(WRITTEN), total(COMMITS), total(RUNNING))

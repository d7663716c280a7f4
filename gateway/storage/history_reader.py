"""The history for commands, which read it beside a gateway that runs."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from gateway.errors import TidegateError
from gateway.routing.where.to_sqlite import SqliteFilter
from gateway.storage.database import BUSY_TIMEOUT_MS, FILE_NAME
from gateway.storage.history import KEEP, RecordedRule
from gateway.storage.history_row import HISTORY_COLUMNS, HistoryRow, from_history_columns
from gateway.storage.where_functions import register_where_functions

_KEPT = "SELECT value FROM meta WHERE name = ?"
_SINCE = f"SELECT {', '.join(HISTORY_COLUMNS)} FROM history WHERE time >= ? ORDER BY id"  # noqa: S608 - our own names
_SIZES = (
    "SELECT time, length(payload) + length(CAST(topic AS BLOB)) FROM history WHERE time >= :since"
)
_OF_EPOCH = f"SELECT {', '.join(HISTORY_COLUMNS)} FROM history WHERE epoch = ? ORDER BY id"  # noqa: S608 - our own names
_RULES = "SELECT place, stream, topic, expression, lane FROM history_rules WHERE start = ?"
_WAITING = "SELECT lane FROM outbox WHERE epoch = ? AND stream = ? AND seq = ?"
_REFUSED = "SELECT code FROM rejected WHERE epoch = ? AND stream = ? AND seq = ?"

Number = tuple[str, str, int]
"""Epoch, stream and number."""


class HistoryReader:
    """What the database of a data folder says of the past."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    @property
    def on(self) -> bool:
        """Whether the gateway keeps a history."""
        try:
            kept = self._connection.execute(_KEPT, (KEEP,)).fetchone()
        except sqlite3.OperationalError:
            return False  # an older schema
        return kept is not None and kept[0] > 0

    def since(self, time: int) -> Iterator[HistoryRow]:
        """Give the messages accepted from `time` on (ms since 1970), oldest first."""
        return map(from_history_columns, self._connection.execute(_SINCE, (time,)))

    def sizes(self, time: int, where: SqliteFilter) -> Iterator[tuple[int, int]]:
        """Give time and bytes of topic and payload of the messages since `time` that pass.

        SQLite works the filter out; what it leaves to a residual is not looked at.
        """
        query = f"{_SIZES} AND ({where.condition}) ORDER BY id"
        rows = self._connection.execute(query, {**where.parameters, "since": time})
        return ((accepted, size) for accepted, size in rows)

    def find(self, number: Number) -> HistoryRow | None:
        """Return the message that was given this number, None if it is not kept."""
        epoch, stream, sequence = number
        rows = map(from_history_columns, self._connection.execute(_OF_EPOCH, (epoch,)))
        wanted = (stream, sequence)
        return next(
            (row for row in rows if any((n.stream, n.number) == wanted for n in row.numbers)), None
        )

    def rules(self, start: int) -> dict[int, RecordedRule]:
        """Return the rules of a start of the gateway by their place."""
        rows = self._connection.execute(_RULES, (start,))
        return {row[0]: RecordedRule(*row) for row in rows}

    def waits(self, number: Number) -> bool:
        """Return whether the message is in the outbox."""
        return self._connection.execute(_WAITING, number).fetchone() is not None

    def refusal(self, number: Number) -> int | None:
        """Return the reason code with which the fleet refused the message, None if it did not."""
        found = self._connection.execute(_REFUSED, number).fetchone()
        return None if found is None else int(found[0])


@contextmanager
def open_history(folder: Path) -> Iterator[HistoryReader | None]:
    """Open the database of a data folder for reading; None if there is none.

    Raises TidegateError if it cannot be read.
    """
    path = folder / FILE_NAME
    if not path.exists():
        yield None
        return
    uri = f"{path.absolute().as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(uri, timeout=BUSY_TIMEOUT_MS / 1000, uri=True)) as connection:
            register_where_functions(connection)
            connection.execute("BEGIN")  # all that is asked is of one moment
            yield HistoryReader(connection)
    except sqlite3.Error as error:
        raise TidegateError(f"{path}: {error}") from error

"""The history for commands, which read it beside a gateway that runs."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gateway.storage.engine.beside import open_beside
from gateway.storage.engine.database import database_file
from gateway.storage.history.history import KEEP, RecordedRule
from gateway.storage.history.outcome_reader import Number, OutcomeReader
from gateway.storage.history.row import HISTORY_COLUMNS, HistoryRow, from_history_columns
from gateway.storage.history.subscriptions import COLUMNS, RecordedSubscription
from gateway.storage.history.where_functions import register_where_functions
from gateway.where.sqlite.to_sqlite import SqliteFilter

_KEPT = "SELECT value FROM meta WHERE name = ?"
_SINCE = f"SELECT {', '.join(HISTORY_COLUMNS)} FROM history WHERE time >= ? ORDER BY id"  # noqa: S608 - our own names
_OLDEST = "SELECT time FROM history ORDER BY id LIMIT 1"
_SIZES = (
    "SELECT time, length(payload) + length(CAST(topic AS BLOB)) FROM history WHERE time >= :since"
)
_OF_EPOCH = f"SELECT {', '.join(HISTORY_COLUMNS)} FROM history WHERE epoch = ? AND instr(rules, ?)"  # noqa: S608 - our own names
_RULES = "SELECT place, stream, topic, expression, lane FROM history_rules WHERE start = ?"
_OF_TOPIC = (
    f"SELECT {', '.join(HISTORY_COLUMNS)} FROM history"  # noqa: S608 - our own names
    " WHERE topic = ? AND (? IS NULL OR id < ?) ORDER BY id DESC LIMIT ?"
)
_LAST_START = "SELECT coalesce(max(value), 0) FROM meta WHERE name = 'starts'"
_OF_START = "SELECT 1 FROM history WHERE epoch = ? AND start = ? LIMIT 1"
_SUBSCRIPTIONS = f"SELECT {', '.join(COLUMNS)} FROM history_subscriptions"  # noqa: S608 - the same
_PRESENT = f"{_SUBSCRIPTIONS} WHERE until IS NULL ORDER BY client_id, topic_filter"
_AT = (
    f"{_SUBSCRIPTIONS} WHERE since < ? AND (until IS NULL OR until >= ?)"
    " ORDER BY client_id, topic_filter"
)


class HistoryReader:
    """What the database of a data folder says of the past; `outcomes` of how messages ended.

    Of a topic's earlier messages `most` are read, or all.
    """

    def __init__(self, connection: sqlite3.Connection, most: int = -1) -> None:
        self._connection = connection
        self._most = most
        self.outcomes = OutcomeReader(connection)

    @property
    def on(self) -> bool:
        """Whether the gateway keeps a history."""
        try:
            kept = self._connection.execute(_KEPT, (KEEP,)).fetchone()
        except sqlite3.OperationalError:
            return False  # an older schema
        return kept is not None and kept[0] > 0

    def oldest(self) -> int | None:
        """Return when the oldest message was accepted (ms since 1970), None if there is none."""
        found = self._connection.execute(_OLDEST).fetchone()
        return None if found is None else int(found[0])

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
        begin = f'["{stream}",{sequence},'  # of what is told of this stream (history_row)
        found = self._connection.execute(_OF_EPOCH, (epoch, begin))
        rows = map(from_history_columns, found)
        wanted = (stream, sequence)
        return next(
            (row for row in rows if any((n.stream, n.number) == wanted for n in row.numbers)), None
        )

    def rules(self, start: int) -> dict[int, RecordedRule]:
        """Return the rules of a start of the gateway by their place."""
        rows = self._connection.execute(_RULES, (start,))
        return {row[0]: RecordedRule(*row) for row in rows}

    def last_start(self) -> int:
        """Return the number of the gateway's last start, 0 before the first."""
        return int(self._connection.execute(_LAST_START).fetchone()[0])

    def earlier_epoch(self, epoch: str) -> bool:
        """Return whether the gateway has been started since it had this epoch."""
        present = self._connection.execute(_OF_START, (epoch, self.last_start())).fetchone()
        return present is None

    def of_topic(self, topic: str, before: int | None) -> list[HistoryRow]:
        """Return the messages of a topic, oldest first; those before the row of this id."""
        rows = self._connection.execute(_OF_TOPIC, (topic, before, before, self._most))
        return [from_history_columns(row) for row in rows][::-1]

    def last_of(self, topic: str) -> HistoryRow | None:
        """Return the last message of a topic, None if there is none."""
        found = self._connection.execute(_OF_TOPIC, (topic, None, None, 1)).fetchone()
        return None if found is None else from_history_columns(found)

    def subscriptions(self, at: int | None) -> list[RecordedSubscription]:
        """Return the subscriptions that the message of this row met; for None those of now."""
        statement = _PRESENT if at is None else _AT
        rows = self._connection.execute(statement, () if at is None else (at, at))
        return [
            RecordedSubscription(
                client_id, topic_filter, qos, bool(no_local), expression, bool(identity)
            )
            for client_id, topic_filter, qos, no_local, expression, identity in rows
        ]


@contextmanager
def open_history(folder: Path, most: int = -1) -> Iterator[HistoryReader | None]:
    """Open the database of a data folder for reading; None if there is none.

    Raises TidegateError if it cannot be read.
    """
    path = database_file(folder)
    if not path.exists():
        yield None
        return
    with open_beside(path) as connection:
        register_where_functions(connection)
        connection.execute("BEGIN")  # all that is asked is of one moment
        yield HistoryReader(connection, most)

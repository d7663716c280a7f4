"""The messages that the gateway accepted, as far back as configured."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gateway.counters import Counters
from gateway.mqtt.message import Message
from gateway.storage.engine.database import Database
from gateway.storage.engine.many_rows import insert_statement
from gateway.storage.engine.writer import Writer
from gateway.storage.history.recorded import KEEP
from gateway.storage.history.row import (
    HISTORY_COLUMNS,
    HistoryRow,
    Numbered,
    from_history_columns,
    size_of,
    to_history_columns,
)

TRIM_ROWS = 64
"""Rows recorded between two checks of age and size."""

CLEAR_ROWS = 500
"""Rows that are deleted in one commit when the history is turned off."""

_INSERT = insert_statement("history", HISTORY_COLUMNS)
_LAST = "SELECT coalesce(max(id), 0) FROM history"
_SAVE_KEEP = (
    "INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"
)
_RULE = "INSERT OR REPLACE INTO history_rules VALUES (?, ?, ?, ?, ?, ?)"
_TRIM_BYTES = "DELETE FROM history WHERE id <= ?"
# The oldest rows have the lowest ids: the search ends at the first row that stays.
_TRIM_TIME = (
    "DELETE FROM history WHERE id < (SELECT id FROM history WHERE time >= ? ORDER BY id LIMIT 1)"
)
_CLEAR = "DELETE FROM history"
_CLEAR_RULES = "DELETE FROM history_rules"
_PIECE_END = "SELECT id FROM history ORDER BY id LIMIT 1 OFFSET ?"
_TRIM_RULES = (
    "DELETE FROM history_rules"
    " WHERE start < (SELECT coalesce(min(start), ?) FROM history) AND start < ?"
)


class RecordedRule(NamedTuple):
    """A rule as a start of the gateway had it; without `expression` it accepts every message."""

    place: int
    stream: str
    topic: str
    expression: str | None
    lane: str


class History:
    """A ring of messages in SQLite, bounded in seconds and bytes; off with `keep` 0.

    The id of a row is the number of bytes recorded up to it, so the bound in bytes is a range of
    ids. While the writer is full nothing is recorded, counted in `tidegate/history/skipped`. `keep`
    is in seconds, `last` the id of the newest row.
    """

    def __init__(
        self, database: Database, writer: Writer, counters: Counters, keep: int, max_bytes: int
    ) -> None:
        self._database = database
        self._writer = writer
        self._counters = counters
        self.keep = keep
        self._max_bytes = max_bytes
        self.last = 0
        self._rows_since_trim = 0
        self._epoch, self._start = "", 0

    async def begin(self, epoch: str, start: int, rules: Sequence[RecordedRule]) -> None:
        """Write the bounds and the rules, for programs that read the file.

        The recorded messages of an earlier run are deleted if history is off.
        """
        self._epoch, self._start = epoch, start
        if not self.keep:
            self._writer.add(_CLEAR, ())
            self._writer.add(_CLEAR_RULES, ())
        self._writer.add(_TRIM_RULES, (start, start))
        self.change(self.keep, self._max_bytes)
        self.record_rules(rules)
        self._writer.hand_over()
        query = self._database.writer.query
        self.last = await query(_LAST, (), lambda cursor: int(cursor.fetchone()[0]))

    async def clear(self) -> bool:
        """Add the deletion of the oldest rows to the batch; return whether there were any."""
        query = self._database.writer.query
        found = await query(_PIECE_END, (CLEAR_ROWS,), lambda cursor: cursor.fetchone())
        statements = [(_TRIM_BYTES, found)] if found else [(_CLEAR, ()), (_CLEAR_RULES, ())]
        for statement, row in statements:
            self._writer.add(statement, row)
        return found is not None

    def change(self, keep: int, max_bytes: int) -> None:
        """Use this period and size from now on."""
        self.keep, self._max_bytes = keep, max_bytes
        self._writer.add(_SAVE_KEEP, (KEEP, keep))

    def record_rules(self, rules: Sequence[RecordedRule]) -> None:
        """Write the rules that rows refer to by their index."""
        for each in rules if self.keep else ():
            row = (self._start, each.place, each.stream, each.topic, each.expression, each.lane)
            self._writer.add(_RULE, row)

    def add(self, message: Message, numbers: Sequence[Numbered]) -> None:
        """Write the row of a message, and the deletion of rows beyond the bounds."""
        size = size_of(message)
        if not self._writer.accepts(size):
            self._counters.add("tidegate/history/skipped")
            return
        self.last += size
        row = HistoryRow(self.last, self._start, self._epoch, message, tuple(numbers))
        self._writer.add(_INSERT, to_history_columns(row), message.commit_within)
        self._counters.add("tidegate/history/recorded")
        self._rows_since_trim += 1
        if self._rows_since_trim >= TRIM_ROWS:
            self._rows_since_trim = 0
            oldest = (message.received_at or 0) - 1000 * self.keep
            self._writer.add(_TRIM_BYTES, (self.last - self._max_bytes,), None)
            self._writer.add(_TRIM_TIME, (oldest,), None)


PIECE_BYTES = 256 * 1024
"""Bytes of history in one read: other queries wait for it."""

EVER = 2**62
"""A time (ms since 1970) after all others."""

_EDGES = "SELECT coalesce(min(id), 0), coalesce(max(id), 0) FROM history"
_PIECE = (
    f"SELECT {', '.join(HISTORY_COLUMNS)} FROM history WHERE id > ? AND id <= ?"  # noqa: S608
    " AND time >= ? AND time <= ? AND (epoch = ? OR ? IS NULL) ORDER BY id"
)


class Window(NamedTuple):
    """Messages accepted between two times (ms since 1970), both included, in one start or any."""

    first_time: int = 0
    last_time: int = EVER
    epoch: str | None = None


class HistoryRecall:
    """The messages of a window in the order in which they were accepted.

    Messages recorded after the first `read` are not included.
    """

    def __init__(self, database: Database, window: Window) -> None:
        self._database = database
        self._window = window
        self._position = -1
        self._end = 0

    async def read(self) -> Iterator[HistoryRow] | None:
        """Return the next messages, perhaps none; None at the end. Raises sqlite3.Error.

        Each is made from its row when it is requested: making all at once would delay others.
        """
        rows = self._database.queries.rows
        if self._position < 0:
            ((first, self._end),) = await rows(_EDGES)
            self._position = max(0, first - 1)
        if self._position >= self._end:
            return None
        # An id counts the bytes up to its message: a range of ids is one of bytes. A message may be
        # larger than the range, and is then the only one in it.
        up_to = min(self._end, self._position + PIECE_BYTES)
        window = self._window
        values = (self._position, up_to, window.first_time, window.last_time)
        found = await rows(_PIECE, (*values, window.epoch, window.epoch))
        self._position = up_to
        return map(from_history_columns, found)

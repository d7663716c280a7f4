"""Reads the history beside a running gateway, a bounded piece at a time."""

import sqlite3
from dataclasses import dataclass

from gateway.storage.engine.database import Database
from gateway.storage.history.row import HISTORY_COLUMNS, HistoryRow, from_history_columns

PIECE_BYTES = 256 * 1024
"""Bytes of history that one read looks at; the uplink's own reads wait behind it."""

EVER = 2**62
"""A time (ms since 1970) after all others."""

_EDGES = "SELECT coalesce(min(id), 0), coalesce(max(id), 0) FROM history"
_PIECE = (
    f"SELECT {', '.join(HISTORY_COLUMNS)} FROM history WHERE id > ? AND id <= ?"  # noqa: S608
    " AND time >= ? AND time <= ? AND (epoch = ? OR ? IS NULL) ORDER BY id"
)


@dataclass(frozen=True, slots=True)
class Window:
    """Messages accepted between two times (ms since 1970), both included, in one start or any."""

    first_time: int = 0
    last_time: int = EVER
    epoch: str | None = None


class HistoryRecall:
    """The messages of a window in the order in which they were accepted.

    What is recorded after the first `read` is not among them.
    """

    def __init__(self, database: Database, window: Window) -> None:
        self._database = database
        self._window = window
        self._position = -1
        self._end = 0

    async def read(self) -> list[HistoryRow] | None:
        """Return the next messages, perhaps none; None at the end. Raises sqlite3.Error."""
        query = self._database.reader.query
        if self._position < 0:
            first, self._end = await query(_EDGES, (), lambda cursor: cursor.fetchone())
            self._position = max(0, first - 1)
        if self._position >= self._end:
            return None
        # The id of a message counts the bytes up to it: a range of ids is one of bytes. One
        # message may be larger than that, and then its range is empty but for itself.
        up_to = min(self._end, self._position + PIECE_BYTES)
        window = self._window
        values = (self._position, up_to, window.first_time, window.last_time)
        rows = await query(_PIECE, (*values, window.epoch, window.epoch), _rows)
        self._position = up_to
        return rows


def _rows(cursor: sqlite3.Cursor) -> list[HistoryRow]:
    return [from_history_columns(values) for values in cursor]

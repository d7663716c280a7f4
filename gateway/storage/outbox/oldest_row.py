"""Since when the oldest row of the outbox has been waiting."""

import sqlite3
from collections.abc import Collection
from typing import Any

from gateway.storage.outbox.outbox_row import OutboxRow
from gateway.storage.outbox.reader import OutboxReader

_OLDEST = "SELECT id, time FROM outbox ORDER BY id LIMIT 1"


class OldestRow:
    """The row with the lowest id; `time` is its acceptance time (ms), None when there is none.

    After it was removed, `look` finds the next one: `unknown` says so.
    """

    def __init__(self, reader: OutboxReader) -> None:
        self.time: int | None = None
        self._id = 0
        self._reader = reader

    @property
    def unknown(self) -> bool:
        """Whether `time` is that of a row which may have left."""
        return not self._id

    def added(self, row: OutboxRow, rows: int) -> None:
        """Take in a new row beside `rows` others."""
        if rows == 0:
            self._id, self.time = row.id, row.time

    def removed(self, identifiers: Collection[int], rows: int) -> None:
        """Take in that the rows of these ids have left `rows` others."""
        if self._id in identifiers:
            self._id = 0
        if rows == 0:
            self.time = None

    async def look(self) -> None:
        """Ask the disk; raise sqlite3.Error.

        What it shows may have been removed; then the next commit is the time to look again.
        """
        while (found := await self._reader.read(_OLDEST, (), _one)) is not None:
            identifier, self.time = found
            if self._reader.shows(identifier):
                self._id = identifier
                return
            if self._reader.is_on_its_way(identifier):
                return


def _one(cursor: sqlite3.Cursor) -> Any:
    return cursor.fetchone()

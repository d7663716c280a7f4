"""The sums of a large outbox on disk, so that a start reads little of it."""

import sqlite3
from typing import Any

from gateway.storage.engine.database import Database
from gateway.storage.engine.writer import Writer
from gateway.storage.outbox.streams.streams import OutboxStreams

SCAN_ROWS = 10_000
"""Rows that a start counts one by one, at most; sums are on disk only where there are more."""

_SUMS = "SELECT stream, rows, bytes, up_to FROM outbox_totals"
# "+stream": by id, from up_to on, and not through the index of all rows.
# "total": a sum of damaged sizes may be more than an integer holds, and would end the query.
_COUNT = (
    "SELECT stream, count(*), CAST(total(size) AS INTEGER) FROM outbox"
    " WHERE id > ? GROUP BY +stream"
)
_LAST = "SELECT coalesce(max(id), 0) FROM outbox"
_SET = (
    "INSERT INTO outbox_totals (stream, rows, bytes, up_to) VALUES (?, ?, ?, ?) ON CONFLICT"
    " DO UPDATE SET rows = excluded.rows, bytes = excluded.bytes, up_to = excluded.up_to"
)
_CLEAR = "DELETE FROM outbox_totals"


class OutboxTotals:
    """Keeps the sums of `streams` exact on disk at the price of few writes.

    A small outbox is counted at the start and has none. A larger one writes them in each batch
    that removes rows, and every SCAN_ROWS new rows: what came since has higher ids, and is
    counted.
    """

    def __init__(self, database: Database, writer: Writer, streams: OutboxStreams) -> None:
        self.last_id = 0
        self._database = database
        self._writer = writer
        self._streams = streams
        self._up_to = 0
        self._on_disk = False
        self._removed = False
        writer.before_batch.append(self._gather)

    async def load(self) -> None:
        """Give the streams the sums of what an earlier run left; `last_id` is its highest id."""
        sums = await self._rows(_SUMS, ())
        self._on_disk = bool(sums)
        self._up_to = max((row[3] for row in sums), default=0)
        ((self.last_id,),) = await self._rows(_LAST, ())
        self.last_id = max(self.last_id, self._up_to)
        counted = await self._rows(_COUNT, (self._up_to,))
        for name, rows, size, *_ in (*sums, *counted):
            stream = self._streams.of(name)
            stream.rows += rows
            stream.bytes += size
            stream.last_id = self.last_id
            self._streams.rows += rows
            self._streams.bytes += size

    def removed(self) -> None:
        """Note that the present batch removes rows."""
        self._removed = True

    def _gather(self) -> None:
        if self._streams.rows <= SCAN_ROWS:
            if self._on_disk:
                self._writer.add(_CLEAR, ())
            self._on_disk = False
        elif self._removed or not self._on_disk or self.last_id - self._up_to >= SCAN_ROWS:
            self._up_to = self.last_id
            self._on_disk = True
            for stream in self._streams:
                row = (stream.settings.name, stream.rows, stream.bytes, self._up_to)
                self._writer.add(_SET, row)
        self._removed = False

    async def _rows(self, statement: str, values: tuple[object, ...]) -> list[Any]:
        return await self._database.reader.query(statement, values, _all)


def _all(cursor: sqlite3.Cursor) -> list[Any]:
    return cursor.fetchall()

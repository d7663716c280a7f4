"""Reads of the outbox that show no row which has left it, on disk or not yet."""

import logging
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from gateway.storage.engine.database import Database
from gateway.storage.engine.writer import Writer
from gateway.storage.outbox.lane import RECALL
from gateway.storage.outbox.outbox_row import COLUMNS, SIZE_INDEX, OutboxRow, from_columns
from gateway.storage.outbox.uplink_bits import UplinkBits

logger = logging.getLogger(__name__)

MAX_FETCH_BYTES = 1024 * 1024
"""Bytes after which one `fetch` ends, so that large payloads do not fill the memory."""

SUMMARY = "id, size, epoch, stream, seq, lane, topic, time, uplinks"
"""The columns of a row without what the publisher put into the message."""

_UNINDEXED = "outbox_unindexed"
"""The name in `meta` of the highest id of a row that the index of streams may not have."""

_ALL_IDS = 2**62
_GET = "SELECT value FROM meta WHERE name = ?"
_SET = (
    "INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"
)
_ALL = ", ".join((*COLUMNS, "uplinks"))
_FETCH = f"SELECT {_ALL} FROM outbox WHERE id > ? AND id <= ?"  # noqa: S608 - our own names
_INDEXED = "outbox INDEXED BY outbox_stream WHERE indexed = 1 AND"
_OF_STREAM = _FETCH.replace("outbox WHERE", _INDEXED)
_RECALLED = _FETCH.replace("outbox", "outbox INDEXED BY outbox_recall") + " AND lane = 'recall'"
_COUNT_RECALLED = "SELECT count(*) FROM outbox INDEXED BY outbox_recall WHERE lane = 'recall'"

T = TypeVar("T")


class OutboxReader:
    """The committed rows, without those whose removal is on its way to disk.

    `indexed` says whether rows that come go into the index of streams: where there is one stream,
    nobody needs it, and it would be one more page to write in each commit.
    """

    def __init__(self, database: Database, writer: Writer, uplinks: UplinkBits) -> None:
        self.indexed = False
        self._unindexed = _ALL_IDS
        self._uplinks = uplinks
        self._database = database
        self._writer = writer
        self._leaving: dict[int, set[int]] = {}
        self._changing: dict[int, dict[int, int]] = {}
        self._begun: list[int] = []

    async def load(self, last_id: int, *, several: bool) -> None:
        """Learn which rows up to this id the index has, and decide for the rows to come.

        Rows of a time with one stream are never put into it later: they would all be written
        anew. Until they have left, they are read through without it. Raises sqlite3.Error.
        """
        found = await self._database.reader.query(_GET, (_UNINDEXED,), lambda all_: all_.fetchone())
        known = _ALL_IDS if found is None else found[0]  # a salvaged database may have lost it
        self._unindexed = min(known, last_id) if several else _ALL_IDS
        self.indexed = several
        if self._unindexed != known:
            try:
                await self._database.writer.write([(_SET, [(_UNINDEXED, self._unindexed)])])
            except sqlite3.Error as error:
                logger.warning("the outbox works without its index of streams: %s", error)
                self.indexed, self._unindexed = True, _ALL_IDS  # what is on disk stays true

    def leave(self, identifiers: Iterable[int], batch: int) -> None:
        """Show these rows no more: the batch of this number deletes them."""
        self._leaving.setdefault(batch, set()).update(identifiers)

    def change(self, uplinks: Mapping[int, int], batch: int) -> None:
        """Show rows as waited for by these uplinks: the batch of this number says so on disk."""
        self._changing.setdefault(batch, {}).update(uplinks)

    def forget(self) -> None:
        """Forget the removals that every read can see; call it after each commit."""
        seen = min(self._begun, default=self._writer.committed)
        for batch in [batch for batch in self._leaving if batch <= seen]:
            del self._leaving[batch]
        for batch in [batch for batch in self._changing if batch <= seen]:
            del self._changing[batch]

    def shows(self, identifier: int) -> bool:
        """Return whether a row that was read has not left meanwhile."""
        return not any(identifier in rows for rows in self._leaving.values())

    async def fetch(
        self,
        after_id: int,
        up_to: int,
        limit: int,
        *,
        lane: str | None,
        stream: str | None,
        uplink: int = 1,
    ) -> list[OutboxRow]:
        """Return rows of an uplink with `after_id` < id <= `up_to`, at most `limit`, rising."""
        statement = _FETCH
        if lane == RECALL:
            statement, lane = _RECALLED, None
        elif stream is not None and after_id >= self._unindexed:
            statement = _OF_STREAM
        condition, more = self._uplinks.condition(uplink)
        statement += condition
        for column, value in (("lane", lane), ("stream", stream)):
            if value is not None:
                statement += f" AND {column} = ?"
                more += (value,)
        statement += " ORDER BY id LIMIT ?"
        # In SQL, not after it: a lane or stream with few rows among many would otherwise be read
        # through page by page.
        while True:
            values = (after_id, up_to, *more, limit)
            found = await self.read(statement, values, self._rows_up_to_bytes)
            rows = [row for row in self._shown(found) if row.uplinks & uplink]
            if rows or not found:
                return rows
            after_id = found[-1].id  # all of them have left; there may be more behind

    def _shown(self, rows: list[OutboxRow]) -> list[OutboxRow]:
        """Return those of `rows` that have not left meanwhile."""
        for left in self._leaving.values():
            rows = [row for row in rows if row.id not in left]
        return self._changed(rows)

    def _changed(self, rows: list[OutboxRow]) -> list[OutboxRow]:
        """Return `rows` for the uplinks that wait for each by now."""
        for changed in self._changing.values():
            for row in rows:
                row.uplinks = changed.get(row.id, row.uplinks)
        return rows

    async def head(self, stream: str, after_id: int, up_to: int, limit: int) -> list[OutboxRow]:
        """Return summaries of the stream's rows behind `after_id`, at most `limit`, rising.

        Rows that have left are among them: see `shows`.
        """
        where = _INDEXED if after_id >= self._unindexed else "outbox WHERE"
        statement = f"SELECT {SUMMARY} FROM {where}"  # noqa: S608 - our own names
        statement += " stream = ? AND id > ? AND id <= ? ORDER BY id LIMIT ?"
        rows = await self.read(statement, (stream, after_id, up_to, limit), self._summaries)
        return self._changed(rows)

    async def newest(self, stream: str, limit: int) -> list[OutboxRow]:
        """Return summaries of the stream's rows, at most `limit`, the newest first."""
        where = "outbox WHERE" if self._unindexed else _INDEXED
        statement = f"SELECT {SUMMARY} FROM {where} stream = ?"  # noqa: S608 - our own names
        statement += " ORDER BY id DESC LIMIT ?"
        return await self.read(statement, (stream, limit), self._summaries)

    async def expired(self, now: int, limit: int, after_id: int, up_to: int) -> list[OutboxRow]:
        """Return summaries of rows whose message expiry has passed at `now` (ms)."""
        statement = f"SELECT {SUMMARY} FROM outbox INDEXED BY outbox_expiry"  # noqa: S608
        statement += " WHERE message_expiry IS NOT NULL AND time + 1000 * message_expiry <= ?"
        statement += " AND id > ? AND id <= ? LIMIT ?"
        rows = await self.read(statement, (now, after_id, up_to, limit), self._summaries)
        return self._shown(rows)

    async def count_recalled(self) -> int:
        """Return how many rows of the lane `recall` wait."""
        return await self.read(_COUNT_RECALLED, (), lambda cursor: int(cursor.fetchone()[0]))

    async def read(
        self, statement: str, values: tuple[object, ...], take: Callable[[sqlite3.Cursor], T]
    ) -> T:
        """Return what `take` made of the statement's cursor.

        Until the next `forget` after it, `shows` knows of each row it gave whether it has left.
        """
        # The read's snapshot is of this commit or of a later one: it may still show rows that a
        # batch after it removes. What these are is kept until every such read has ended.
        begun = self._writer.committed
        self._begun.append(begun)
        try:
            return await self._database.reader.query(statement, values, take)
        finally:
            self._begun.remove(begun)

    def _rows_up_to_bytes(self, cursor: sqlite3.Cursor) -> list[OutboxRow]:
        rows: list[OutboxRow] = []
        size = 0
        for *values, uplinks in cursor:
            row = from_columns(values)
            row.uplinks = self._uplinks.bits(uplinks)
            rows.append(row)
            size += values[SIZE_INDEX]
            if size >= MAX_FETCH_BYTES:
                break
        return rows

    def _summaries(self, cursor: sqlite3.Cursor) -> list[OutboxRow]:
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return [
            OutboxRow(
                *(epoch, stream, seq, lane, topic, b""),
                time=time,
                identifier=identifier,
                size=size,
                uplinks=self._uplinks.bits(uplinks),
            )
            for identifier, size, epoch, stream, seq, lane, topic, time, uplinks in rows
        ]

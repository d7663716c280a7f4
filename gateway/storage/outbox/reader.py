"""Reads the undeleted rows of the outbox, on disk or not yet."""

import logging
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from gateway.mqtt.message import Message
from gateway.storage.engine.connection import Row
from gateway.storage.engine.database import Database
from gateway.storage.engine.writer import Writer
from gateway.storage.outbox.row import COLUMNS, RECALL, SIZE_INDEX, OutboxRow, from_columns
from gateway.storage.outbox.uplinks import UplinkBits

logger = logging.getLogger(__name__)

MAX_FETCH_BYTES = 1024 * 1024
"""Bytes after which one `fetch` ends, so that large payloads do not fill the memory."""

MAX_RECENT_ROWS = 1_024
"""Recent rows that are cached in memory; older ones are read from disk."""

MAX_RECENT_BYTES = 1024 * 1024
"""Bytes of the same rows, as the outbox counts them; the newest stays whatever its size."""

SUMMARY = "id, size, epoch, stream, seq, lane, topic, time, uplinks"
"""The columns of a row without the publisher's content."""

_UNINDEXED = "outbox_unindexed"
"""The name in `meta` of the highest id of a row that may be missing in the index of streams."""

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


class RecentRows:
    """The values of the rows with the highest ids, so that live ones are not read back."""

    def __init__(self) -> None:
        self._rows: dict[int, tuple[int, Row, int]] = {}
        self._bytes = 0
        self._complete_from = 0

    def start(self, last_id: int) -> None:
        """Begin after the rows of an earlier run."""
        self._complete_from = last_id + 1

    def add(self, identifier: int, size: int, values: Row, uplinks: int = 1) -> None:
        """Add a row that is being written; the oldest are removed for it."""
        self._rows[identifier] = (size, values, uplinks)
        self._bytes += size
        while len(self._rows) > MAX_RECENT_ROWS or (
            self._bytes > MAX_RECENT_BYTES and len(self._rows) > 1
        ):
            oldest = next(iter(self._rows))
            self._bytes -= self._rows.pop(oldest)[0]
            self._complete_from = max(self._complete_from, oldest + 1)

    def remove(self, identifier: int) -> None:
        """Forget a deleted row."""
        if (found := self._rows.pop(identifier, None)) is not None:
            self._bytes -= found[0]

    def change(self, identifier: int, uplinks: int) -> None:
        """Note that only these uplinks wait for a row."""
        if (found := self._rows.get(identifier)) is not None:
            self._rows[identifier] = (*found[:2], uplinks)

    def fetch(
        self,
        after_id: int,
        up_to: int,
        limit: int,
        *,
        lane: str | None,
        stream: str | None,
        uplink: int = 1,
    ) -> list[OutboxRow] | None:
        """Return the same as `OutboxReader.fetch`, None if the disk must be read."""
        # the loop below goes through every id
        if after_id + 1 < self._complete_from or up_to - after_id > MAX_RECENT_ROWS:
            return None
        rows: list[OutboxRow] = []
        size = 0
        for identifier in range(after_id + 1, up_to + 1):
            found = self._rows.get(identifier)
            if found is None or not found[2] & uplink:
                continue  # it is deleted, or was never for this uplink
            row = from_columns(found[1])
            row.uplinks = found[2]
            if (lane is None or row.lane == lane) and (stream is None or row.stream == stream):
                rows.append(row)
                size += row.size
                if len(rows) >= limit or size >= MAX_FETCH_BYTES:
                    break
        return rows


class OutboxReader:
    """The committed rows, without those whose deletion is pending.

    `indexed` says whether new rows are added to the index of streams: with one stream nothing uses
    it, and it would be one more page to write in each commit. A row that is held is one object,
    however often it is read. `recent` rows are read from memory. `unwritten` are the rows, by id,
    that are being sent and are not on disk: no read returns them.
    """

    def __init__(self, database: Database, writer: Writer, uplinks: UplinkBits) -> None:
        self.indexed = False
        self.recent = RecentRows()
        self.unwritten: dict[int, OutboxRow] = {}
        self._held: WeakValueDictionary[int, OutboxRow] = WeakValueDictionary()
        self._unindexed = _ALL_IDS
        self._uplinks = uplinks
        self._database = database
        self._writer = writer
        self._deleted: dict[int, set[int]] = {}
        self._changed: dict[int, dict[int, int]] = {}
        self._begun: list[int] = []

    async def load(self, last_id: int, *, several: bool) -> None:
        """Find out which rows up to this id are in the index, and decide for new rows.

        Rows from a time with one stream are never added to it later: all of them would be
        rewritten. Until they are deleted, they are read without it. Raises sqlite3.Error.
        """
        self.recent.start(last_id)
        found = await self._database.reader.query(_GET, (_UNINDEXED,), lambda all_: all_.fetchone())
        known = _ALL_IDS if found is None else found[0]  # a salvaged database may have lost it
        self._unindexed = min(known, last_id) if several else _ALL_IDS
        self.indexed = several
        if self._unindexed != known:
            try:
                await self._database.writer.write([(_SET, [(_UNINDEXED, self._unindexed)])])
            except sqlite3.Error as error:
                logger.warning("the outbox works without its index of streams: %s", error)
                self.indexed, self._unindexed = True, _ALL_IDS  # the index on disk stays valid

    def hold(self, row: OutboxRow) -> OutboxRow:
        """Return the held object of this row, by default this one."""
        return self._held.setdefault(row.id, row)

    def is_claimed(self, identifier: int) -> bool:
        """Return whether the row of this id is being sent to the fleet."""
        row = self.unwritten.get(identifier) or self._held.get(identifier)
        return row is not None and bool(row.claimed)

    def mark_deleted(self, identifier: int) -> None:
        """Mark a row as deleted in the object of it that somebody holds."""
        held = self.unwritten.get(identifier) or self._held.get(identifier)
        if held is not None:
            held.deleted = True

    def delete(self, identifiers: Iterable[int], batch: int) -> None:
        """Hide these rows: the batch of this number deletes them."""
        self._deleted.setdefault(batch, set()).update(identifiers)

    def change(self, uplinks: Mapping[int, int], batch: int) -> None:
        """Show these uplinks for rows: the batch of this number writes them."""
        self._changed.setdefault(batch, {}).update(uplinks)

    @property
    def is_reading(self) -> bool:
        """Whether a read of the database is under way."""
        return bool(self._begun)

    @property
    def rows(self) -> list[OutboxRow]:
        """The rows that somebody holds."""
        return [*self.unwritten.values(), *self._held.values()]

    def change_uplinks(self, changed: Callable[[int], int], last_id: int) -> None:
        """Know rows by other bits; none up to this id is in memory any more."""
        self.recent = RecentRows()
        self.recent.start(last_id)
        for rows in self._changed.values():
            rows.update({each: changed(uplinks) for each, uplinks in rows.items()})

    def forget(self) -> None:
        """Forget the deletions that every read can see; call it after each commit."""
        seen = min(self._begun, default=self._writer.committed)
        for batch in (*self._deleted, *self._changed):
            if batch <= seen:
                self._deleted.pop(batch, None)
                self._changed.pop(batch, None)

    def shows(self, identifier: int) -> bool:
        """Return whether a row that was read has not been deleted meanwhile."""
        return not any(identifier in rows for rows in self._deleted.values())

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
        """Return rows of an uplink with `after_id` < id <= `up_to`, at most `limit`, rising.

        Each is one object while anybody holds it.
        """
        which = (after_id, up_to, limit)
        rows = self.recent.fetch(*which, lane=lane, stream=stream, uplink=uplink)
        if rows is None:
            rows = await self._fetch(*which, lane, stream, uplink)
        return [self._held.setdefault(row.id, row) for row in rows]

    async def _fetch(
        self,
        after_id: int,
        up_to: int,
        limit: int,
        lane: str | None,
        stream: str | None,
        uplink: int,
    ) -> list[OutboxRow]:
        """Return the same from disk."""
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
        # In SQL, not after it: otherwise all pages would be read for a lane or stream with few rows
        # among many.
        while True:
            values = (after_id, up_to, *more, limit)
            found = await self.read(statement, values, self._rows_up_to_bytes)
            rows = [row for row in self._shown(found) if row.uplinks & uplink]
            if rows or not found:
                return rows
            after_id = found[-1].id  # all of them are deleted; there may be more after them

    def _shown(self, rows: list[OutboxRow]) -> list[OutboxRow]:
        """Return those of `rows` that have not been deleted meanwhile."""
        for deleted in self._deleted.values():
            rows = [row for row in rows if row.id not in deleted]
        return self._up_to_date(rows)

    def _up_to_date(self, rows: list[OutboxRow]) -> list[OutboxRow]:
        """Return `rows` with the uplinks that wait for each by now."""
        for changed in self._changed.values():
            for row in rows:
                row.uplinks = changed.get(row.id, row.uplinks)
        return rows

    async def head(self, stream: str, after_id: int, up_to: int, limit: int) -> list[OutboxRow]:
        """Return summaries of the stream's rows after `after_id`, at most `limit`, rising.

        They include deleted rows: see `shows`.
        """
        where = _INDEXED if after_id >= self._unindexed else "outbox WHERE"
        statement = f"SELECT {SUMMARY} FROM {where}"  # noqa: S608 - our own names
        statement += " stream = ? AND id > ? AND id <= ? ORDER BY id LIMIT ?"
        rows = await self.read(statement, (stream, after_id, up_to, limit), self._summaries)
        return self._up_to_date(rows)

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
        self, statement: str, values: tuple[object, ...], convert: Callable[[sqlite3.Cursor], T]
    ) -> T:
        """Return the result of `convert` for the statement's cursor.

        Until the next `forget` after it, `shows` knows which of its rows are deleted.
        """
        # The read's snapshot is of this commit or of a later one: it may contain rows that a later
        # batch removes. These are remembered until every such read has ended.
        begun = self._writer.committed
        self._begun.append(begun)
        try:
            return await self._database.reader.query(statement, values, convert)
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
        rows = []
        found: list[tuple[Any, ...]] = cursor.fetchall()
        for identifier, size, epoch, stream, seq, lane, topic, time, uplinks in found:
            row = OutboxRow(Message(topic, received_at=time), epoch, stream, seq, lane)
            row.id, row.size, row.uplinks = identifier, size, self._uplinks.bits(uplinks)
            rows.append(row)
        return rows

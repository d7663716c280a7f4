"""The messages that wait for the fleet: in SQLite until a remote PUBACK has taken them."""

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Iterable
from typing import Any

from gateway.counters import Counters
from gateway.storage.database import Database
from gateway.storage.fate import Fate
from gateway.storage.outbox_row import (
    COLUMNS,
    SIZE_INDEX,
    OutboxRow,
    from_columns,
    insert_statement,
    row_size,
    to_columns,
)
from gateway.storage.writer import Writer

logger = logging.getLogger(__name__)

MAX_OUTBOX_BYTES = 1024 * 1024 * 1024
"""Bytes of all rows (`OutboxRow.size`) from which the outbox is full and takes no message."""

MAX_FETCH_BYTES = 1024 * 1024
"""Bytes after which one `fetch` ends, so that large payloads do not fill the memory."""

_INSERT = insert_statement("outbox", COLUMNS)
_DELETE = "DELETE FROM outbox WHERE id = ?"
_FETCH = " ".join(("SELECT", ", ".join(COLUMNS), "FROM outbox WHERE id > ? AND id <= ?"))
_TOTALS = "SELECT count(*), coalesce(sum(size), 0), coalesce(max(id), 0) FROM outbox"
_OLDEST = "SELECT id, time FROM outbox ORDER BY id LIMIT 1"
_LANES = "SELECT DISTINCT lane FROM outbox"


class Outbox:
    """Rows in the order in which they came; ids rise by one and are never used twice in a run.

    `rows` and `bytes` count what is in it now, gathered rows included. `oldest_time` is the
    acceptance time (ms) of the row with the lowest id, None when empty; after the oldest was
    removed it follows with the commit. `committed_id` is the highest id on disk, up to which
    `fetch` finds rows. `removing` counts removals that are not on disk yet: after a crash those
    rows would be back. `lanes` are the lanes that rows have had since the start. `on_change` are
    called after each commit that brought or removed rows, `on_fate` with each row that leaves, how
    it ended and why, in the turn that gathers its removal: what they gather is in the same batch.

    When `full` (MAX_OUTBOX_BYTES by default, or the disk takes no more) the caller refuses the
    message with 0x97 and calls `refuse()`, which counts it in `tidegate/outbox/rejected` or
    `tidegate/storage/rejected`.
    """

    def __init__(
        self,
        database: Database,
        writer: Writer,
        counters: Counters,
        max_bytes: int = MAX_OUTBOX_BYTES,
    ) -> None:
        self.rows = 0
        self.bytes = 0
        self.oldest_time: int | None = None
        self.last_id = 0
        self.committed_id = 0
        self.lanes: set[str] = set()
        self.removing = 0
        self.on_change: list[Callable[[], None]] = []
        self.on_fate: list[Callable[[OutboxRow, Fate, str], None]] = []
        self._oldest_id = 0
        self._database = database
        self._writer = writer
        self._counters = counters
        self._max_bytes = max_bytes
        self._last_of_batch: dict[int, int] = {}
        self._removed_in_batch: dict[int, int] = {}
        self._looking: asyncio.Task[None] | None = None
        self._closed = False
        writer.on_committed.append(self._committed)

    async def load(self) -> None:
        """Learn what an earlier run left; call it once, before anything is added."""
        query = self._database.reader.query
        self.rows, self.bytes, self.last_id = await query(_TOTALS, (), _one)
        self.lanes = {str(lane) for (lane,) in await query(_LANES, (), _all)}
        self.committed_id = self.last_id
        await self._look_for_oldest()
        self._count()

    @property
    def full(self) -> bool:
        """True from the bound on (the message that crosses it is still taken), or without disk."""
        return self.bytes >= self._max_bytes or self._writer.full

    def refuse(self) -> None:
        """Count a message that was refused, by whose bound it was."""
        part = "storage" if self._writer.full else "outbox"
        self._counters.add(f"tidegate/{part}/rejected")

    def add(self, row: OutboxRow) -> int:
        """Gather `row`, giving it its id and size; return the batch that brings it to disk."""
        self.last_id += 1
        row.id = self.last_id
        row.size = row_size(row)
        batch = self._writer.add(_INSERT, to_columns(row))
        self._last_of_batch[batch] = row.id
        if self.rows == 0:
            self._oldest_id, self.oldest_time = row.id, row.time
        self.rows += 1
        self.bytes += row.size
        self.lanes.add(row.lane)
        self._count()
        return batch

    def remove(self, rows: Iterable[OutboxRow], fate: Fate, cause: str = "") -> int:
        """Gather the deletion of rows that ended as `fate` says; return the batch's number."""
        batch = 0
        for row in rows:
            batch = self._writer.add(_DELETE, (row.id,))
            self._removed_in_batch[batch] = self._removed_in_batch.get(batch, 0) + 1
            self.removing += 1
            self.rows -= 1
            self.bytes -= row.size
            if row.id == self._oldest_id:
                self._oldest_id = 0  # looked up when the deletion is on disk
            for callback in self.on_fate:
                callback(row, fate, cause)
        if self.rows == 0:
            self.oldest_time = None
        self._count()
        return batch

    def end_turn(self) -> None:
        """Have the writer commit what was gathered here, outside a turn of the server."""
        self._writer.hand_over()

    async def fetch(
        self, after_id: int, limit: int, up_to: int | None = None, lane: str | None = None
    ) -> list[OutboxRow]:
        """Return committed rows with `after_id` < id <= `up_to` in rising order.

        At most `limit` of them, fewer after MAX_FETCH_BYTES (but one at least, if there is
        one); only those of `lane` unless it is None.
        """
        bounds: tuple[int | str, ...] = (after_id, self.committed_id if up_to is None else up_to)
        statement = _FETCH
        if lane is not None:
            statement += " AND lane = ?"
            bounds += (lane,)
        return await self._database.reader.query(
            f"{statement} ORDER BY id LIMIT ?", (*bounds, limit), _rows_up_to_bytes
        )

    async def close(self) -> None:
        """End the looks into the database, which may close from now on."""
        self._closed = True
        if self._looking is not None:
            await self._looking

    def _committed(self, batch: int) -> None:
        added = _pop_up_to(self._last_of_batch, batch)
        removed = _pop_up_to(self._removed_in_batch, batch)
        if added:
            self.committed_id = added[-1]
        self.removing -= sum(removed)
        if self.rows and not self._oldest_id and self._looking is None and not self._closed:
            self._looking = asyncio.get_running_loop().create_task(self._look_for_oldest())
        if added or removed:
            for callback in self.on_change:
                callback()

    async def _look_for_oldest(self) -> None:
        removing = self.removing
        try:
            found = await self._database.reader.query(_OLDEST, (), _one)
        except sqlite3.Error as error:
            logger.warning("the oldest row of the outbox could not be read: %s", error)
            return
        finally:
            self._looking = None
        if found is not None and self.rows:
            self._oldest_id, self.oldest_time = found
            if removing or self.removing:  # perhaps this one: look again after their commit
                self._oldest_id = 0

    def _count(self) -> None:
        self._counters.set("tidegate/outbox/rows", self.rows)
        self._counters.set("tidegate/outbox/bytes", self.bytes)


def _pop_up_to(by_batch: dict[int, int], batch: int) -> list[int]:
    return [by_batch.pop(number) for number in list(by_batch) if number <= batch]


def _one(cursor: sqlite3.Cursor) -> Any:
    return cursor.fetchone()


def _all(cursor: sqlite3.Cursor) -> list[Any]:
    return cursor.fetchall()


def _rows_up_to_bytes(cursor: sqlite3.Cursor) -> list[OutboxRow]:
    rows: list[OutboxRow] = []
    size = 0
    for values in cursor:
        rows.append(from_columns(values))
        size += values[SIZE_INDEX]
        if size >= MAX_FETCH_BYTES:
            break
    return rows

"""What the gateway found out about its wall clock: on disk until the fleet has received it."""

import json
from collections import Counter, deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from gateway.counters import Counters
from gateway.storage.engine.connection import Batch
from gateway.storage.engine.database import Database
from gateway.storage.engine.writer import Writer

if TYPE_CHECKING:
    from gateway.clock.spans import Span

MAX_CLOCK_RECORDS = 1_000
"""Records that wait for the fleet; the oldest are deleted, counted in clock/dropped."""

NOTE_STEP = (
    "INSERT INTO outbox_steps (last_id, step) SELECT coalesce(max(id), 0), ? FROM outbox WHERE true"
    " ON CONFLICT (last_id) DO UPDATE SET step = step + excluded.step"
)
"""Notes by how many ms the clock was set forward, or back, since all rows on disk were accepted."""

NEWEST_IN_OUTBOX = (
    "SELECT time + coalesce((SELECT sum(step) FROM outbox_steps WHERE last_id >= id), 0)"
    " FROM outbox ORDER BY id DESC LIMIT 1"
)
"""When the newest row was accepted by the clock as it is set now (ms since 1970)."""

_SPANS = (
    "SELECT boot, epoch, offset_ms, begins, ends, numbers FROM clock_spans WHERE boot = ?"
    " ORDER BY id"
)
_FORGET_SPANS = "DELETE FROM clock_spans"
_INSERT_SPAN = (
    "INSERT INTO clock_spans (boot, epoch, offset_ms, begins, ends, numbers)"
    " VALUES (?, ?, ?, ?, ?, ?)"
)
_RECORDS = "SELECT id, record FROM clock_records ORDER BY id"
_INSERT = "INSERT INTO clock_records (id, record) VALUES (?, ?)"
_DELETE = "DELETE FROM clock_records WHERE id = ?"


class ClockStore:
    """`records` wait for the fleet, by their ids."""

    def __init__(self, database: Database, writer: Writer, counters: Counters) -> None:
        self.records: dict[int, str] = {}
        self.listeners = 1
        """How many uplinks must report a record."""
        self._reported_by: Counter[int] = Counter()
        self._database = database
        self._writer = writer
        self._counters = counters
        self._ids: deque[int] = deque()
        self._last_id = 0

    async def load(self, boot: str) -> "list[Span]":
        """Load the state of an earlier run; return the uncorrected spans of this boot.

        Those of other boots will never be corrected: no clock has run since.
        """
        query = self._database.reader.query
        self.records = dict(await query(_RECORDS, (), lambda cursor: cursor.fetchall()))
        self._ids = deque(self.records)
        self._last_id = max(self.records, default=0)
        rows = await query(_SPANS, (boot,), lambda cursor: cursor.fetchall())
        return [_span(*row) for row in rows]

    def save_spans(self, spans: "Sequence[Span]") -> None:
        """Write the uncorrected spans, in place of those on disk."""
        self._writer.add(_FORGET_SPANS, ())
        for span in spans:
            numbers = json.dumps([span.first, span.last], separators=(",", ":"))
            row = (span.boot, span.epoch, span.offset, span.begins, span.ends, numbers)
            self._writer.add(_INSERT_SPAN, row)

    def add(self, record: str) -> int:
        """Write a record for the fleet; return its id."""
        self._last_id += 1
        self._writer.add(_INSERT, (self._last_id, record))
        self.records[self._last_id] = record
        self._ids.append(self._last_id)
        while len(self._ids) > MAX_CLOCK_RECORDS:
            if self.remove(self._ids.popleft()):
                self._counters.add("tidegate/clock/dropped")
        return self._last_id

    def reported(self, identifier: int) -> None:
        """Note that one more uplink has reported a record; after the last it is deleted."""
        self._reported_by[identifier] += 1
        if self._reported_by[identifier] >= self.listeners:
            self.remove(identifier)

    def remove(self, identifier: int) -> bool:
        """Delete a record; False if it no longer exists."""
        self._reported_by.pop(identifier, None)
        if self.records.pop(identifier, None) is None:
            return False
        self._writer.add(_DELETE, (identifier,))
        return True

    def end_turn(self) -> None:
        """Have the writer commit what was added here, outside a turn of the server."""
        self._writer.hand_over()


def _span(
    boot: str, epoch: str, offset: int, begins: int, ends: int | None, numbers: str
) -> "Span":
    from gateway.clock.spans import Span

    first, last = json.loads(numbers)
    return Span(boot, epoch, offset, begins, ends, first, last)


BOOT, AHEAD, WALL = "clock_boot", "clock_ahead", "clock_wall"
"""The names in `meta`."""

_SET = (
    "INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"
)
_FORGET = "DELETE FROM meta WHERE name = ?"
_READ = "SELECT name, value FROM meta WHERE name IN (?, ?, ?)"

_BOOT_DIGITS = 15
"""Hexadecimal digits of a boot's name that are stored: as many as fit an integer of SQLite."""


class Stamp(NamedTuple):
    """By how many milliseconds the wall clock was ahead of the monotonic one in this boot.

    `wall` is its last time, None while the kernel knew that it was right.
    """

    boot: int
    ahead: int
    wall: int | None = None

    @property
    def rows(self) -> Batch:
        """Return the statements that write it."""
        batch = [(_SET, [(BOOT, self.boot), (AHEAD, self.ahead)])]
        if self.wall is None:
            return [*batch, (_FORGET, [(WALL,)])]
        return [*batch, (_SET, [(WALL, self.wall)])]


def boot_number(boot_id: str) -> int:
    """Return a number for the name of a boot, such as "6145d69b-cc4a-..."; 0 for none."""
    return int(boot_id.replace("-", "")[:_BOOT_DIGITS] or "0", 16)


async def read_stamp(database: Database) -> Stamp | None:
    """Return the stamp that an earlier run left."""
    names = (BOOT, AHEAD, WALL)
    rows = await database.writer.query(_READ, names, lambda cursor: cursor.fetchall())
    found = {str(name): int(value) for name, value in rows}
    if BOOT not in found or AHEAD not in found:
        return None
    return Stamp(found[BOOT], found[AHEAD], found.get(WALL))

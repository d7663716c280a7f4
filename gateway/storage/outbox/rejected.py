"""The messages that the fleet refused for good, kept with the reason code for a person to see."""

from collections import deque

from gateway.counters import Counters
from gateway.storage.engine.database import Database
from gateway.storage.engine.many_rows import insert_statement
from gateway.storage.engine.writer import Writer
from gateway.storage.outbox.outbox_row import COLUMNS, OutboxRow, to_columns

MAX_REJECTED_ROWS = 1_000
"""Refused messages that are kept; the oldest make room, counted in uplink/refused_dropped."""

MAX_REJECTED_BYTES = 16 * 1024 * 1024
"""Bytes of the same messages (`OutboxRow.size`)."""

_INSERT = insert_statement("rejected", ("code", "rejected_at", *COLUMNS))
_DELETE = "DELETE FROM rejected WHERE id = ?"
_SIZES = "SELECT id, size FROM rejected ORDER BY id"


class Rejected:
    """A bounded table of refused messages, the newest MAX_REJECTED_ROWS."""

    def __init__(self, database: Database, writer: Writer, counters: Counters) -> None:
        self.bytes = 0
        self._database = database
        self._writer = writer
        self._counters = counters
        self._sizes: deque[tuple[int, int]] = deque()

    async def load(self) -> None:
        """Learn what an earlier run left; call it once, before anything is added."""
        reader = self._database.reader
        self._sizes = deque(await reader.query(_SIZES, (), lambda cursor: cursor.fetchall()))
        self.bytes = sum(size for _, size in self._sizes)

    @property
    def rows(self) -> int:
        """How many refused messages are kept."""
        return len(self._sizes)

    def add(self, row: OutboxRow, code: int, rejected_at: int) -> None:
        """Gather `row` with the reason code of its refusal; the caller removes it from the outbox.

        Gathered in the same turn as the removal, both are on disk or neither.
        """
        identifier = self._sizes[-1][0] + 1 if self._sizes else 1
        _, *columns = to_columns(row)
        self._writer.add(_INSERT, (code, rejected_at, identifier, *columns))
        self._sizes.append((identifier, row.size))
        self.bytes += row.size
        while len(self._sizes) > 1 and self._over():
            oldest, size = self._sizes.popleft()
            self.bytes -= size
            self._writer.add(_DELETE, (oldest,))
            self._counters.add("tidegate/uplink/refused_dropped")

    def _over(self) -> bool:
        return len(self._sizes) > MAX_REJECTED_ROWS or self.bytes > MAX_REJECTED_BYTES

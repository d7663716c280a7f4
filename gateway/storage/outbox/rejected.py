"""Messages that the fleet rejected, stored with the cause until a person decides."""

import logging
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

from gateway.counters import Counters
from gateway.storage.engine.database import Database
from gateway.storage.engine.many_rows import insert_statement
from gateway.storage.engine.writer import Writer
from gateway.storage.outbox.row import COLUMNS, OutboxRow, from_columns, to_columns

logger = logging.getLogger(__name__)

MAX_REJECTED_ROWS = 1_000
"""Rejected messages that are stored; the oldest are deleted, counted in uplink/refused_dropped."""

MAX_REJECTED_BYTES = 16 * 1024 * 1024
"""Bytes of the same messages (`OutboxRow.size`)."""

_OWN = ("code", "rejected_at", "cause", "uplink")
_INSERT = insert_statement("rejected", (*_OWN, *COLUMNS))
_DELETE = "DELETE FROM rejected WHERE id = ?"
_SIZES = "SELECT id, size FROM rejected ORDER BY id"
_READ = (
    f"SELECT {', '.join((*_OWN, *COLUMNS))} FROM rejected"  # noqa: S608 - our own names
    " WHERE id > ? ORDER BY id LIMIT ?"
)


class RejectedRow(NamedTuple):
    """A rejected message: cause, time (ms since 1970), and the uplink of the fleet."""

    identifier: int
    code: int
    rejected_at: int
    cause: str
    uplink: str
    row: OutboxRow

    @property
    def number(self) -> str:
        """The permanent number of the message, without the gateway's id."""
        return f"{self.row.epoch}.{self.row.stream}.{self.row.seq}"


class Rejected:
    """A bounded table of rejected messages, the newest MAX_REJECTED_ROWS."""

    def __init__(self, database: Database, writer: Writer, counters: Counters) -> None:
        self.bytes = 0
        self._database = database
        self._writer = writer
        self._counters = counters
        self._sizes: deque[tuple[int, int]] = deque()
        self._dropped = False

    async def load(self) -> None:
        """Load the state of an earlier run; call it once, before anything is added."""
        reader = self._database.reader
        self._sizes = deque(await reader.query(_SIZES, (), lambda cursor: cursor.fetchall()))
        self.bytes = sum(size for _, size in self._sizes)
        self._show()

    @property
    def rows(self) -> int:
        """How many rejected messages are stored."""
        return len(self._sizes)

    def add(
        self, row: OutboxRow, code: int, rejected_at: int, cause: str = "", uplink: str = ""
    ) -> None:
        """Write `row` with the cause of its end; the caller removes it from the outbox.

        Written in the same turn as the removal, both are on disk or neither.
        """
        identifier = self._sizes[-1][0] + 1 if self._sizes else 1
        _, *columns = to_columns(row)
        values = (code, rejected_at, cause or None, uplink or None, identifier, *columns)
        self._writer.add(_INSERT, values)
        self._sizes.append((identifier, row.size))
        self.bytes += row.size
        while len(self._sizes) > 1 and self._over():
            oldest, size = self._sizes.popleft()
            self.bytes -= size
            self._writer.add(_DELETE, (oldest,))
            self._counters.add("tidegate/uplink/refused_dropped")
            self._log_dropped()
        self._show()

    async def read(self, after: int, limit: int) -> list[RejectedRow]:
        """Return rejected messages on disk with an identifier above `after`, the oldest first."""
        reader = self._database.reader
        rows = await reader.query(_READ, (after, limit), lambda cursor: cursor.fetchall())
        return [_rejected(values) for values in rows]

    def remove(self, identifiers: Sequence[int]) -> None:
        """Delete messages."""
        gone = set(identifiers)
        for identifier in gone:
            self._writer.add(_DELETE, (identifier,))
        self.bytes -= sum(size for identifier, size in self._sizes if identifier in gone)
        self._sizes = deque(each for each in self._sizes if each[0] not in gone)
        self._show()

    def holds(self, identifier: int) -> bool:
        """Return whether a message is still stored."""
        return any(identifier == each for each, _ in self._sizes)

    def _log_dropped(self) -> None:
        """Log the first message that is deleted for others."""
        if not self._dropped:
            self._dropped = True
            most = f"{MAX_REJECTED_ROWS:,} and {MAX_REJECTED_BYTES >> 20} MiB"
            logger.warning("the oldest rejected messages are deleted: at most %s are stored", most)

    def _over(self) -> bool:
        return len(self._sizes) > MAX_REJECTED_ROWS or self.bytes > MAX_REJECTED_BYTES

    def _show(self) -> None:
        self._counters.set("tidegate/uplink/rejected", len(self._sizes))
        self._counters.set("tidegate/uplink/rejected_bytes", self.bytes)


def _rejected(values: Sequence[Any]) -> RejectedRow:
    code, rejected_at, cause, uplink, *columns = values
    row = from_columns(columns)
    return RejectedRow(row.id, code, rejected_at, cause or f"0x{code:02X}", uplink or "", row)

"""The uplinks that wait for a row: a bit for each in memory, their names on disk."""

import sqlite3
from collections.abc import Sequence

from gateway.storage.engine.database import Database

EVERY = -1
"""The bits of all uplinks."""

_COUNTS = (
    "SELECT uplinks, count(*) FROM outbox INDEXED BY outbox_uplinks"
    " WHERE uplinks IS NOT NULL GROUP BY uplinks"
)


class UplinkBits:
    """Maps uplinks' `names`, in the order of their bits; an only uplink has no name on disk.

    If the configuration has changed so that none of them waits for a row, the first does.
    """

    def __init__(self, names: Sequence[str] = ()) -> None:
        self.names = tuple(names) if len(names) > 1 else ("",)
        self.several = len(self.names) > 1
        self.every = (1 << len(self.names)) - 1
        self.rows = [0] * len(self.names)
        self._indexes: dict[int, tuple[int, ...]] = {}
        self._texts: dict[int, str | None] = {}
        self._bits: dict[str | None, int] = {None: 1}

    async def load(self, database: Database, rows: int) -> None:
        """Count the rows that wait for each, of so many rows; raise sqlite3.Error."""
        self.rows = [0] * len(self.names)
        counted: list[tuple[str, int]] = []
        if self.several and rows:
            counted = await database.reader.query(_COUNTS, (), sqlite3.Cursor.fetchall)
        for text, count in counted:
            self.count(self.bits(text), count)
        self.rows[0] += rows - sum(count for _, count in counted)

    def count(self, bits: int, rows: int) -> None:
        """Add rows that wait for these uplinks."""
        for index in self._indexes.get(bits) or self.indexes(bits):
            self.rows[index] += rows

    def indexes(self, bits: int) -> tuple[int, ...]:
        """Return the indexes of these uplinks in the configuration, from 0."""
        indexes = self._indexes.get(bits)
        if indexes is None:
            indexes = tuple(index for index in range(len(self.names)) if bits >> index & 1)
            self._indexes[bits] = indexes
        return indexes

    def text(self, bits: int) -> str | None:
        """Return the text on disk."""
        if not self.several:
            return None
        text = self._texts.get(bits)
        if text is None:
            names = ",".join(self.names[index] for index in self.indexes(bits))
            text = self._texts[bits] = f",{names},"
        return text

    def bits(self, text: str | None) -> int:
        """Return the bits of a text on disk."""
        bits = self._bits.get(text)
        if bits is None:
            names = (text or "").split(",")
            found = (1 << index for index, name in enumerate(self.names) if name and name in names)
            bits = self._bits[text] = sum(found) or 1
        return bits

    def condition(self, uplink: int) -> tuple[str, tuple[str, ...]]:
        """Return SQL and values that select the rows that an uplink waits for, "" for all."""
        if not self.several:
            return "", ()
        own = f",{self.names[uplink.bit_length() - 1]},"
        if uplink != 1:
            return " AND instr(uplinks, ?)", (own,)
        others = [f",{name}," for name in self.names[1:]]
        none = " OR ".join("instr(uplinks, ?)" for _ in others)
        return f" AND (uplinks IS NULL OR instr(uplinks, ?) OR NOT ({none}))", (own, *others)

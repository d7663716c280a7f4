"""The uplinks that a row is owed: in memory a bit for each, on disk their names."""

import sqlite3
from collections.abc import Sequence

from gateway.storage.engine.database import Database

EVERY = -1
"""The bits of all uplinks."""

_COUNTS = (
    "SELECT uplinks, count(*) FROM outbox INDEXED BY outbox_uplinks"
    " WHERE uplinks IS NOT NULL GROUP BY uplinks"
)


class Owed:
    """Knows uplinks by their `names`, in the order of their bits; one alone has none on disk.

    A row that is owed none of them, since the configuration has changed, is owed the first.
    """

    def __init__(self, names: Sequence[str] = ()) -> None:
        self.names = tuple(names) if len(names) > 1 else ("",)
        self.several = len(self.names) > 1
        self.every = (1 << len(self.names)) - 1
        self.rows = [0] * len(self.names)
        self._places: dict[int, tuple[int, ...]] = {}
        self._texts: dict[int, str | None] = {}
        self._bits: dict[str | None, int] = {None: 1}

    async def load(self, database: Database, rows: int) -> None:
        """Count what waits for each, of so many rows; raise sqlite3.Error."""
        self.rows = [0] * len(self.names)
        counted: list[tuple[str, int]] = []
        if self.several and rows:
            counted = await database.reader.query(_COUNTS, (), sqlite3.Cursor.fetchall)
        for text, count in counted:
            self.count(self.bits(text), count)
        self.rows[0] += rows - sum(count for _, count in counted)

    def count(self, bits: int, rows: int) -> None:
        """Add to what waits for these uplinks."""
        for place in self._places.get(bits) or self.places(bits):
            self.rows[place] += rows

    def places(self, bits: int) -> tuple[int, ...]:
        """Return the places of these uplinks in the configuration, from 0."""
        places = self._places.get(bits)
        if places is None:
            places = tuple(index for index in range(len(self.names)) if bits >> index & 1)
            self._places[bits] = places
        return places

    def text(self, bits: int) -> str | None:
        """Return what stands on disk."""
        if not self.several:
            return None
        text = self._texts.get(bits)
        if text is None:
            names = ",".join(self.names[place] for place in self.places(bits))
            text = self._texts[bits] = f",{names},"
        return text

    def bits(self, text: str | None) -> int:
        """Return what is meant on disk."""
        bits = self._bits.get(text)
        if bits is None:
            names = (text or "").split(",")
            found = (1 << index for index, name in enumerate(self.names) if name and name in names)
            bits = self._bits[text] = sum(found) or 1
        return bits

    def condition(self, uplink: int) -> tuple[str, tuple[str, ...]]:
        """Return SQL with its values that holds for the rows that an uplink is owed, "" for all."""
        if not self.several:
            return "", ()
        own = f",{self.names[uplink.bit_length() - 1]},"
        if uplink != 1:
            return " AND instr(uplinks, ?)", (own,)
        others = [f",{name}," for name in self.names[1:]]
        none = " OR ".join("instr(uplinks, ?)" for _ in others)
        return f" AND (uplinks IS NULL OR instr(uplinks, ?) OR NOT ({none}))", (own, *others)

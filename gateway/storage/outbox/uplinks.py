"""The uplinks that wait for a row: a bit for each in memory, their names on disk."""

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from gateway.storage.engine.database import Database

EVERY = -1
"""The bits of all uplinks."""

_COUNTS = (
    "SELECT uplinks, count(*) FROM outbox INDEXED BY outbox_uplinks"
    " WHERE uplinks IS NOT NULL GROUP BY uplinks"
)
_NAME = "UPDATE outbox SET uplinks = ?"
_NAME_REST = f"{_NAME} WHERE (uplinks IS NULL OR NOT ({{}}))"
_UNNAME = (
    "UPDATE outbox SET uplinks = nullif(replace(uplinks, ?, ','), ',') WHERE instr(uplinks, ?)"
)

Places = Sequence[int | None]
"""For each uplink its place among the new ones, None for a removed one."""


class UplinkBits:
    """Maps uplinks' `names`, in the order of their bits; an only uplink has no name on disk.

    A row whose uplinks were all removed waits for the first. `waiting` counts the rows by the bits
    of all that wait for them, if there are `several`; `total` returns how many rows wait in all.
    """

    def __init__(self, names: Sequence[str] = (), total: Callable[[], int] = int) -> None:
        self.waiting: Counter[int] = Counter()
        self._total = total
        self._name(names)

    def _name(self, names: Sequence[str]) -> None:
        self.names = tuple(names) if len(names) > 1 else ("",)
        self.several = len(self.names) > 1
        self.every = (1 << len(self.names)) - 1
        self._rows = [0] * len(self.names)
        self._indexes: dict[int, tuple[int, ...]] = {}
        self._texts: dict[int, str | None] = {}
        self._bits: dict[str | None, int] = {None: 1}

    @property
    def rows(self) -> list[int]:
        """How many rows wait for each uplink."""
        return self._rows if self.several else [self._total()]

    async def load(self, database: Database, rows: int) -> None:
        """Count the rows of each, given their total; raise sqlite3.Error."""
        counted: list[tuple[str, int]] = []
        if self.several and rows:
            counted = await database.reader.query(_COUNTS, (), sqlite3.Cursor.fetchall)
        for text, count in counted:
            self.count(self.bits(text), count)
        self.count(1, rows - sum(count for _, count in counted))

    def count(self, bits: int, rows: int) -> None:
        """Change the counts of these uplinks."""
        self.waiting[bits] += rows
        for index in self._indexes.get(bits) or self.indexes(bits):
            self._rows[index] += rows

    def ended(self, bits: int, ending: int) -> None:
        """Note that a row which waited for uplinks ended for some of them."""
        self.count(bits, -1)
        if rest := bits & ~ending:
            self.count(rest, 1)

    def rows_to_rewrite(self, places: Places) -> int:
        """Return how many rows on disk `change` has to rewrite."""
        gone = sum(1 << index for index, place in enumerate(places) if place is None)
        waiting = self._waiting()
        rows = sum(count for bits, count in waiting.items() if self.several and bits & gone)
        return rows if places[0] in (0, None) else rows + waiting[1]

    def change(
        self, names: Sequence[str], places: Places
    ) -> tuple[Callable[[int], int], list[tuple[str, tuple[str, ...]]]]:
        """Use other uplinks from now on; rows of a removed one wait for the first.

        Return a function from old to new bits, and the statements that change the disk likewise. No
        read may be in progress.
        """
        before = self.names
        statements = list(self._renamed(names, places))
        waiting, self.waiting = self._waiting(), Counter()
        self._name(names)

        def changed(bits: int) -> int:
            remaining = (places[index] for index in range(len(before)) if bits >> index & 1)
            return sum(1 << place for place in remaining if place is not None) or 1

        for bits, rows in waiting.items():
            self.count(changed(bits), rows)
        return changed, statements

    def waiting_only_for(self, index: int) -> int:
        """Return how many rows wait for this uplink and for no other."""
        return self._waiting()[1 << index]

    def _waiting(self) -> Counter[int]:
        """Return the counts by bits; a single uplink has only `rows`."""
        return +self.waiting if self.several else Counter({1: self._total()})

    def _renamed(
        self, names: Sequence[str], places: Places
    ) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield the statements in their order: an added uplink must not get rows of an old name."""
        for number, name in enumerate(names):
            if name and number not in places:
                yield _UNNAME, (f",{name},", f",{name},")
        first = places[0]
        if first and self.several:
            others = [f",{name}," for name in self.names]
            statement = _NAME_REST.format(" OR ".join("instr(uplinks, ?)" for _ in others))
            yield statement, (f",{names[first]},", *others)
        elif first:
            yield _NAME, (f",{names[first]},",)
        for name, place in zip(self.names, places, strict=False):
            if name and place is None:
                yield _UNNAME, (f",{name},", f",{name},")

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

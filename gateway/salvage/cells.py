"""Cells of b-tree pages, their records, and their tables (sqlite.org/fileformat2.html, 1.6)."""

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from gateway.salvage.pages import (
    FIRST_OVERFLOW,
    FREE,
    NEXT_OVERFLOW,
    ROOT,
    TREE,
    UNKNOWN,
    Pages,
)

INDEX_INTERIOR, TABLE_INTERIOR, INDEX_LEAF, TABLE_LEAF = 2, 5, 10, 13
KINDS = (INDEX_INTERIOR, TABLE_INTERIOR, INDEX_LEAF, TABLE_LEAF)

LARGEST_RECORD = 512 * 1024 * 1024
"""Bytes above which a length counts as damage; the largest packet is 256 MiB."""

MOST_ROWS = 65_536
"""More rows than a page can have."""

_INTEGER_BYTES = (0, 1, 2, 3, 4, 6, 8)
_FLOAT, _ZERO, _ONE, _FIRST_BLOB, _FIRST_TEXT = 7, 8, 9, 12, 13

UNREADABLE = (ValueError, IndexError, struct.error)
"""Exceptions of reading a damaged cell (UnicodeDecodeError is a ValueError)."""

Value = int | float | str | bytes | None


@dataclass(slots=True)
class Cells:
    """The readable part of a page: rows as (rowid or None, values), and the count of lost cells."""

    rows: list[tuple[int | None, list[Value]]] = field(default_factory=list)
    lost: int = 0


def kind_of(page: bytes, number: int) -> int:
    """Return which of KINDS the page is, 0 if it is none."""
    # the header of the database precedes the first page
    head = 100 if number == 1 else 0
    if not page or page[head] not in KINDS:
        return 0
    kind = page[head]
    # the header of an inner page includes its last child
    pointers = head + (8 if kind in (INDEX_LEAF, TABLE_LEAF) else 12)
    return kind if pointers + 2 * cell_count(page, number) <= len(page) else 0


def rows_of(pages: Pages, page: bytes, number: int, limit: int = MOST_ROWS) -> Cells:
    """Read the rows of a page that holds some, up to `limit`; a table's inner pages hold none."""
    cells = Cells()
    kind = kind_of(page, number)
    read = _table_row if kind == TABLE_LEAF else _index_row
    if kind in (0, TABLE_INTERIOR):
        return cells
    for offset in _offsets(page, number):
        try:
            cells.rows.append(read(pages, page, offset, kind))
        except UNREADABLE:
            cells.lost += 1
        if len(cells.rows) >= limit:
            break
    return cells


def cell_count(page: bytes, number: int) -> int:
    """Return how many cells the page claims to have."""
    head = 100 if number == 1 else 0
    return int.from_bytes(page[head + 3 : head + 5], "big")


def children(page: bytes, number: int) -> list[int]:
    """Return the pages below an inner page in the order of their keys; a leaf has none."""
    if kind_of(page, number) not in (INDEX_INTERIOR, TABLE_INTERIOR):
        return []
    head = 100 if number == 1 else 0
    below = [
        int.from_bytes(page[offset : offset + 4], "big")
        for offset in _offsets(page, number)
        if offset <= len(page) - 4
    ]
    return [*below, int.from_bytes(page[head + 8 : head + 12], "big")]


def first_rowid(page: bytes, number: int) -> int:
    """Return the lowest rowid of a table's leaf by its first cell, 0 if it is unreadable."""
    return next(rowids(page, number), 0)


def rowids(page: bytes, number: int) -> Iterator[int]:
    """Yield the rowid of each cell of a table's leaf, 0 for an unreadable one."""
    if not kind_of(page, number):
        return
    for start in _offsets(page, number):
        try:
            _, offset = varint(page, start)
            yield _signed(varint(page, offset)[0])
        except UNREADABLE:
            yield 0


def varint(data: bytes, index: int) -> tuple[int, int]:
    """Return the number at `index` and where it ends; IndexError beyond the end."""
    byte = data[index]
    if byte < 0x80:
        return byte, index + 1
    value = byte & 0x7F
    for end in range(index + 1, index + 8):
        byte = data[end]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, end + 1
    # the ninth byte has eight bits of the number
    return value << 8 | data[index + 8], index + 9


def record(payload: bytes, encoding: str = "utf-8") -> list[Value]:
    """Return the values of a record; ValueError if its parts do not add up to its length."""
    value_offset, offset = varint(payload, 0)
    end = value_offset
    values: list[Value] = []
    while offset < end:
        kind, offset = varint(payload, offset)
        value, value_offset = _value(payload, kind, value_offset, encoding)
        values.append(value)
    if offset != end or value_offset != len(payload):
        raise ValueError("a record of another length")
    return values


def _value(payload: bytes, kind: int, index: int, encoding: str) -> tuple[Value, int]:
    if kind >= _FIRST_BLOB:
        end = index + (kind - _FIRST_BLOB) // 2
        if end > len(payload):
            raise ValueError("a value beyond the end of its record")
        content = payload[index:end]
        return (content.decode(encoding) if kind & 1 else content), end
    if kind in (_ZERO, _ONE):
        return kind - _ZERO, index
    if kind == _FLOAT:
        return struct.unpack_from(">d", payload, index)[0], index + 8
    end = index + _INTEGER_BYTES[kind]
    return (int.from_bytes(payload[index:end], "big", signed=True) if kind else None), end


def _offsets(page: bytes, number: int) -> Iterator[int]:
    head = 100 if number == 1 else 0
    kind = page[head]
    start = head + (8 if kind in (INDEX_LEAF, TABLE_LEAF) else 12)
    for index in range(start, start + 2 * cell_count(page, number), 2):
        yield page[index] << 8 | page[index + 1]


def _table_row(pages: Pages, page: bytes, index: int, _kind: int) -> tuple[int | None, list[Value]]:
    size, index = varint(page, index)
    rowid, index = varint(page, index)
    form = pages.form
    return _signed(rowid), record(
        _payload(pages, page, index, size, form.most_in_table), form.encoding
    )


def _index_row(pages: Pages, page: bytes, index: int, kind: int) -> tuple[int | None, list[Value]]:
    if kind == INDEX_INTERIOR:
        index += 4
    size, index = varint(page, index)
    form = pages.form
    return None, record(_payload(pages, page, index, size, form.most_in_index), form.encoding)


def _payload(pages: Pages, page: bytes, index: int, size: int, most: int) -> bytes:
    """Return the whole payload of a cell, with what overflows into other pages."""
    if size <= most:
        return page[index : index + size]
    form = pages.form
    # a damaged length must not be followed
    if size > min(LARGEST_RECORD, pages.count * form.page_bytes):
        raise ValueError("a record longer than the database")
    least = form.least
    # the part of a long record that the file format puts on its own page
    local = least + (size - least) % (form.usable - 4)
    if local > most:
        local = least
    parts = [page[index : index + local]]
    left = size - local
    following = int.from_bytes(page[index + local : index + local + 4], "big")
    while left > 0:
        more = pages.read(following)
        if not more:
            raise ValueError("a page of a long record is missing")
        pages.of_long_records.add(following)
        parts.append(more[4 : min(4 + left, form.usable)])
        left -= form.usable - 4
        following = int.from_bytes(more[:4], "big")
    if following:
        raise ValueError("a long record that does not end")
    return b"".join(parts)


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number


LONGEST_WAY = 64
"""Parents on the way up to a root; SQLite's trees are at most 20 pages high."""


class Tables(Protocol):
    """What the search needs of the tables."""

    def fits(self, name: str, number: int, page: bytes) -> bool:
        """Return whether a page with rows can be one of this table."""
        ...

    def distinct(self) -> Iterable[str]:
        """Yield the tables whose pages can be recognised by their rows."""
        ...


@dataclass(slots=True)
class Places:
    """The pages with rows of each table, and those that cannot be read.

    `unknown` are pages of unknown tables; some may belong to long records. `torn` are tables whose
    trees miss some of their pages, or lead to those of others.
    """

    pages: dict[str, list[int]] = field(default_factory=dict)
    lost: dict[str, list[int]] = field(default_factory=dict)
    unknown: list[int] = field(default_factory=list)
    torn: set[str] = field(default_factory=set)


class Search:
    """Finds the pages of tables whose root pages are known.

    A tree is followed down from its root. Pages that damage has cut off are found with the pointer
    map, which has the parent of each page. A page that neither knows is assigned if it fits exactly
    one table. That may bring back a deleted row, but no readable row is missing.
    """

    def __init__(
        self, pages: Pages, roots: Mapping[int, str], names: frozenset[str], tables: Tables
    ) -> None:
        """Use the root pages of all trees by number, and the names of the tables."""
        self._pages = pages
        self._roots = roots
        self._names = names
        self._tables = tables
        self._down: dict[int, str] = {}
        self._parents: set[int] = set()
        self._torn: set[str] = set()
        # A damaged inner page may look like one of another tree and point to that tree's pages. The
        # pointer map is right, unless it is damaged itself: it decides first.
        for by_map in (True, False):
            for root, name in roots.items():
                self._walk_down(root, name, by_map=by_map)

    def places(self) -> Places:
        """Check every page once."""
        places = Places(torn=self._torn)
        for number in range(self._pages.first_of_tables, self._pages.count + 1):
            if not self._pages.holds_nothing(number):
                self._place(places, number, self._pages.read(number))
        for name, lost in places.lost.items():  # an inner page is lost without rows
            places.lost[name] = [number for number in lost if number not in self._parents]
        return places

    def _walk_down(self, root: int, name: str, *, by_map: bool) -> None:
        """Note the pages of a tree, with `by_map` only those that the pointer map confirms."""
        if not self._is_inside(root):
            return
        waiting, seen = [root], {root}
        while waiting:
            number = waiting.pop()
            self._down[number] = name
            for child in children(self._pages.read(number), number):
                foreign = child in self._roots or self._down.get(child, name) != name
                if child in seen or foreign or not self._is_inside(child):
                    self._torn.add(name)
                elif not by_map or self._pages.map_entry(child) in ((TREE, number), UNKNOWN):
                    seen.add(child)
                    waiting.append(child)

    def _is_inside(self, number: int) -> bool:
        return self._pages.first_of_tables <= number <= self._pages.count

    def _place(self, places: Places, number: int, page: bytes) -> None:
        kind = kind_of(page, number)
        by_walk = self._down.get(number)
        has_rows = kind in (TABLE_LEAF, INDEX_LEAF, INDEX_INTERIOR)
        if by_walk is not None and by_walk not in self._names:
            return
        if has_rows and by_walk is not None and self._tables.fits(by_walk, number, page):
            places.pages.setdefault(by_walk, []).append(number)
            return
        if kind == TABLE_INTERIOR:
            return
        by_map, is_certain = self._above(number)
        owner = by_map or by_walk
        if is_certain and owner not in self._names:
            return  # free, of a long record, or of an index
        if has_rows:
            self._place_cut_off(places, owner, number, page)
        elif owner is not None:
            places.lost.setdefault(owner, []).append(number)
        else:
            places.unknown.append(number)

    def _place_cut_off(self, places: Places, owner: str | None, number: int, page: bytes) -> None:
        """Assign a page with rows that the walk did not reach, or reached for another table."""
        candidates = [
            name for name in self._candidates(owner) if self._tables.fits(name, number, page)
        ]
        if owner in candidates:
            candidates = [str(owner)]
        if len(candidates) == 1:
            places.pages.setdefault(candidates[0], []).append(number)
            self._torn.add(candidates[0])
        elif owner is not None:
            places.lost.setdefault(owner, []).append(number)

    def _candidates(self, owner: str | None) -> list[str]:
        names = set(self._tables.distinct())
        return sorted(names if owner is None else names | {owner})

    def _above(self, number: int) -> tuple[str | None, bool]:
        """Return the pointer map's owner of a page, and whether that is certain."""
        kind, parent = self._pages.map_entry(number)
        if kind in (FREE, FIRST_OVERFLOW, NEXT_OVERFLOW):
            return None, True
        if kind == ROOT:
            return self._roots.get(number), number in self._roots
        # a damaged map may have a cycle
        for _ in range(LONGEST_WAY):
            if kind != TREE or not self._is_inside(parent):
                break
            self._parents.add(parent)
            found = self._roots.get(parent) or self._down.get(parent)
            if found is not None:
                return found, True
            kind, parent = self._pages.map_entry(parent)
        return None, False

"""Which table each page of a damaged database belongs to."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from gateway.salvage.cells import (
    INDEX_INTERIOR,
    INDEX_LEAF,
    TABLE_INTERIOR,
    TABLE_LEAF,
    children,
    kind_of,
)
from gateway.salvage.pages import (
    FIRST_OVERFLOW,
    FREE,
    NEXT_OVERFLOW,
    ROOT,
    TREE,
    UNKNOWN,
    Pages,
)

LONGEST_WAY = 64
"""Parents on the way up to a root; SQLite's trees are at most 20 pages high."""


class Tables(Protocol):
    """What the search needs to know of the tables."""

    def fits(self, name: str, number: int, page: bytes) -> bool:
        """Return whether a page with rows can be one of this table."""
        ...

    def distinct(self) -> Iterable[str]:
        """Return the tables whose pages can be told by their rows alone."""
        ...


@dataclass(slots=True)
class Places:
    """The pages with rows of each table, and those that cannot be read.

    `unknown` are pages of which not even the table is known; some may belong to long records.
    `torn` are tables whose trees do not lead to all of their pages, or lead to those of others.
    """

    pages: dict[str, list[int]] = field(default_factory=dict)
    lost: dict[str, list[int]] = field(default_factory=dict)
    unknown: list[int] = field(default_factory=list)
    torn: set[str] = field(default_factory=set)


class Search:
    """Finds the pages of tables whose root pages are known.

    A tree is followed down from its root. What damage has cut off is found by the pointer map,
    which says of each page what is above it; a page that neither knows is taken when it fits
    one table alone: a row that had been deleted may be back by that, but none is missing that
    could be read.
    """

    def __init__(
        self, pages: Pages, roots: Mapping[int, str], names: frozenset[str], tables: Tables
    ) -> None:
        """Take the root pages of all trees by number, and which of the names are tables."""
        self._pages = pages
        self._roots = roots
        self._names = names
        self._tables = tables
        self._down: dict[int, str] = {}
        self._parents: set[int] = set()
        self._torn: set[str] = set()
        # A damaged inner page may be a sound one of another tree and point at that tree's pages.
        # The pointer map knows better, unless it is damaged itself: it decides first.
        for by_map in (True, False):
            for root, name in roots.items():
                self._walk_down(root, name, by_map=by_map)

    def places(self) -> Places:
        """Look at every page once."""
        places = Places(torn=self._torn)
        for number in range(self._pages.first_of_tables, self._pages.count + 1):
            if not self._pages.holds_nothing(number):
                self._place(places, number, self._pages.read(number))
        for name, lost in places.lost.items():  # an inner page is lost without rows
            places.lost[name] = [number for number in lost if number not in self._parents]
        return places

    def _walk_down(self, root: int, name: str, *, by_map: bool) -> None:
        """Note the pages of a tree, with `by_map` only those that the pointer map has there too."""
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
        """Place a page with rows that the walk did not reach, or for another table."""
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
        """Return whose page the pointer map says it is, and whether it says that clearly."""
        kind, parent = self._pages.map_entry(number)
        if kind in (FREE, FIRST_OVERFLOW, NEXT_OVERFLOW):
            return None, True
        if kind == ROOT:
            return self._roots.get(number), number in self._roots
        for _ in range(LONGEST_WAY):
            if kind != TREE or not self._is_inside(parent):
                break
            self._parents.add(parent)
            found = self._roots.get(parent) or self._down.get(parent)
            if found is not None:
                return found, True
            kind, parent = self._pages.map_entry(parent)
        return None, False

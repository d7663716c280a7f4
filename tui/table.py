"""The one table: columns, a cursor, sorting, a filter; without a terminal."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from tui.line import AT_CURSOR, HEAD, MUTED, TEXT, Line, Piece, fitted, line, plain
from tui.queries import Document, number
from tui.text import UNKNOWN, amount, fit, rate

Row = TypeVar("Row")
Cell = str | Piece


@dataclass(frozen=True)
class Column(Generic[Row]):
    """A column: its heading, cells, what is shown, and what it is sorted by if it can be."""

    head: str
    cells: int
    """its width; 0 for what is left"""
    show: Callable[[Row], Cell]
    order: Callable[[Row], float | str | None] | None = None
    right: bool = False
    least: int = 0
    """cells of the table from which it is shown"""


def rate_of(row: Document, name: str) -> str:
    """Return a rate of a query's row without its `/s`."""
    found = number(row.get(name))
    return UNKNOWN if found is None else rate(found).removesuffix("/s")


def whole(row: Document, name: str) -> str:
    """Return a whole number of a query's row."""
    found = number(row.get(name))
    return UNKNOWN if found is None else amount(int(found))


def figure(
    head: str, cells: int, name: str, show: Callable[[Document, str], Cell], least: int = 0
) -> Column[Document]:
    """Return a column of a number of a query's rows, by which they can be sorted."""

    def shown(row: Document) -> Cell:
        return show(row, name)

    def order(row: Document) -> float | None:
        return number(row.get(name))

    return Column(head, cells, shown, order, right=True, least=least)


def filter_of(words: str) -> Callable[[str], bool]:
    """Return what a `/` filter lets through: words, `!word` without it, `~regex`.

    A regular expression that is none lets nothing through.
    """
    tests: list[Callable[[str], bool]] = []
    for word in words.casefold().split():
        if word.startswith("~") and len(word) > 1:
            try:
                found = re.compile(word[1:]).search
            except re.error:
                return lambda _: False
            tests.append(lambda text, found=found: bool(found(text)))  # type: ignore[misc]
        elif word.startswith("!") and len(word) > 1:
            tests.append(lambda text, part=word[1:]: part not in text)  # type: ignore[misc]
        else:
            tests.append(lambda text, part=word: part in text)  # type: ignore[misc]
    return lambda text: all(test(text.casefold()) for test in tests)


class Table(Generic[Row]):
    """Rows under a heading, of which those in view are drawn."""

    def __init__(
        self,
        columns: Sequence[Column[Row]],
        key: Callable[[Row], str],
        sort: int | None = None,
        *,
        descending: bool = False,
        empty: str = "nothing here",
    ) -> None:
        self.columns = columns
        self.key = key
        self.sort = sort
        self.descending = descending
        self.filter = ""
        self.empty = empty
        self.rows: list[Row] = []
        self.cursor = 0
        self.total = 0
        """rows without the filter"""
        self.top = 1
        """the line of the view at which it is drawn"""
        self.has_keys = True
        """whether keys go to it, not to another one beside it"""
        self.marked: set[str] = set()
        """the keys of rows that an action is for, all together"""
        self._first = 0
        self._height = 10
        self._at: str | None = None

    def fill(self, rows: Sequence[Row]) -> None:
        """Show these rows, sorted and filtered; the cursor stays with its row."""
        self.total = len(rows)
        if self.filter:
            lets_through = filter_of(self.filter)
            rows = [row for row in rows if lets_through(self._words(row))]
        order = self.columns[self.sort].order if self.sort is not None else None
        if order is not None:
            ordered = order
            rows = sorted(rows, key=lambda row: _sortable(ordered(row)), reverse=self.descending)
        self.rows = list(rows)
        keys = [self.key(row) for row in self.rows]
        if self._at in keys:
            self.cursor = keys.index(self._at)
        self.move(0)

    @property
    def current(self) -> Row | None:
        """The row at the cursor."""
        return self.rows[self.cursor] if self.rows else None

    def move(self, by: int) -> None:
        """Move the cursor by so many rows."""
        self.cursor = min(max(0, self.cursor + by), max(0, len(self.rows) - 1))
        self._at = self.key(self.rows[self.cursor]) if self.rows else self._at

    def mark(self) -> None:
        """Mark the row at the cursor or take its mark away, and go to the next one."""
        if self.rows:
            self.marked ^= {self.key(self.rows[self.cursor])}
            self.move(1)

    def chosen(self) -> list[Row]:
        """Return the marked rows in view, or the one at the cursor."""
        found = [row for row in self.rows if self.key(row) in self.marked] if self.marked else []
        return found or self.rows[self.cursor : self.cursor + 1]

    def in_view(self) -> list[Row]:
        """Return the rows that were drawn last."""
        return self.rows[self._first : self._first + self._height]

    def point_at(self, key: str) -> None:
        """Put the cursor on the row with this key, now or as soon as there is one."""
        self._at = key
        for index, row in enumerate(self.rows):
            if self.key(row) == key:
                self.cursor = index

    def page(self, by: int) -> None:
        """Move the cursor by pages."""
        self.move(by * max(1, self._height - 1))

    def click(self, at: int) -> bool:
        """Put the cursor on the row drawn at this line below the heading; return whether it is."""
        if 0 <= at < self._height and self._first + at < len(self.rows):
            self.move(self._first + at - self.cursor)
            return True
        return False

    def next_sort(self) -> None:
        """Sort by the next column that can be sorted by."""
        can = [index for index, column in enumerate(self.columns) if column.order is not None]
        if can:
            place = can.index(self.sort) + 1 if self.sort in can else 0
            self.sort = can[place % len(can)]
            self.descending = self.columns[self.sort].right

    @property
    def can_sort(self) -> bool:
        """Whether there is a column to sort by."""
        return any(column.order is not None for column in self.columns)

    def turn_sort(self) -> None:
        """Sort the other way round."""
        if self.sort is None:
            self.next_sort()
        self.descending = not self.descending

    def sorted_by(self) -> str:
        """Return the heading of the column that the rows are sorted by."""
        return "" if self.sort is None else self.columns[self.sort].head.lower()

    def draw(self, cells: int, height: int) -> list[Line]:
        """Return the heading and the rows in view, fitted."""
        shown = [column for column in self.columns if column.least <= cells]
        widths = self._widths(shown, cells)
        self._height = max(1, height - 1)
        last = len(self.rows) - self._height
        self._first = min(max(0, last), self._first)
        self._first = min(self.cursor, max(self._first, self.cursor - self._height + 1))
        result = [self._heading(shown, widths, cells)]
        last = min(len(self.rows), self._first + self._height)
        result += [self._row(shown, widths, index, cells) for index in range(self._first, last)]
        if not self.rows:
            words = f"nothing matches {self.filter!r}" if self.total else self.empty
            result.append(fitted(line((f"  {words}", MUTED)), cells))
        result += [fitted([], cells) for _ in range(height - len(result))]
        return result[:height]

    def _heading(self, shown: Sequence[Column[Row]], widths: list[int], cells: int) -> Line:
        pieces: Line = [("  ", TEXT)]
        for column, taken in zip(shown, widths, strict=True):
            mark = ""
            if self.sort is not None and column is self.columns[self.sort]:
                mark = "▼" if self.descending else "▲"
            text = mark + column.head if column.right else column.head + mark
            pieces += [(fit(text, taken, right=column.right), HEAD), (" ", TEXT)]
        return fitted(pieces, cells)

    def _row(self, shown: Sequence[Column[Row]], widths: list[int], index: int, cells: int) -> Line:
        row = self.rows[index]
        here, marked = index == self.cursor, bool(self.marked) and self.key(row) in self.marked
        pieces: Line = [
            ("▌" if here else " ", "accent" if self.has_keys else MUTED),
            ("●" if marked else " ", "accent"),
        ]
        for column, taken in zip(shown, widths, strict=True):
            cell = column.show(row)
            text, style = (cell, TEXT) if isinstance(cell, str) else cell
            pieces += [(fit(text, taken, right=column.right), style), (" ", TEXT)]
        found = fitted(pieces, cells)
        return [(t, s + AT_CURSOR) for t, s in found] if here and self.has_keys else found

    def _widths(self, shown: Sequence[Column[Row]], cells: int) -> list[int]:
        fixed = sum(column.cells for column in shown) + len(shown) + 2
        free = [column for column in shown if not column.cells]
        left = max(0, cells - fixed)
        share = [left // len(free) + (n < left % len(free)) for n in range(len(free))]
        shares = iter(share)
        return [column.cells or max(4, next(shares)) for column in shown]

    def _words(self, row: Row) -> str:
        cells = (column.show(row) for column in self.columns)
        return plain([(c, TEXT) if isinstance(c, str) else c for c in cells]) + self.key(row)


def _sortable(value: float | str | None) -> tuple[int, float, str]:
    """Return what orders any values: the unknown first, then numbers, then texts."""
    if value is None:
        return 0, 0.0, ""
    return (2, 0.0, value.casefold()) if isinstance(value, str) else (1, float(value), "")

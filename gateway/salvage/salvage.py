"""Copies what can be read of a damaged database into a new one, page by page.

SQLite abandons a whole table at the first bad page. Here every row is found whose own pages are
sound: where SQLite fails, each page is read separately.
"""

import errno
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

from gateway.salvage.cells import Places, Search, cell_count, first_rowid, kind_of, rowids, rows_of
from gateway.salvage.form import Form, odd_file, stated_page_bytes, tables_of
from gateway.salvage.gaps import LostNumbers, lost_numbers
from gateway.salvage.insert import Insert, drop_leftovers
from gateway.salvage.layouts import (
    JSON_COLUMNS,
    Layout,
    is_json,
    layout_of,
    likened,
    old_layouts,
    schema_rows,
)
from gateway.salvage.pages import Pages

ALL = (-(1 << 63), (1 << 63) - 1)
"""The lowest and the highest rowid."""

_ENCODING_NUMBERS = {"utf-8": 1, "utf-16-le": 2, "utf-16-be": 3}
"""The header's numbers of encodings."""


LOCK_SECONDS = 5.0
"""How long a query waits for a lock that somebody else has."""
BLOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)


class Shortcut:
    """Reads the rows of a range with SQLite.

    The caller compares them, and otherwise reads pages. A lock is waited for once: each group of
    pages would wait for it again, for minutes in all.
    """

    def __init__(self, path: Path, header: bytes, form: Form) -> None:
        """Open the database if its first page, which begins with `header`, can be trusted."""
        self._compared: set[str] = set()
        is_usable = _is_safe(path) and _is_of(header, form)
        uri = f"{path.absolute().as_uri()}?mode=ro" if is_usable else ":memory:"
        try:
            self._connection = sqlite3.connect(
                uri, timeout=LOCK_SECONDS, uri=True, isolation_level=None
            )
        except sqlite3.Error:
            self._connection = sqlite3.connect(":memory:")

    def close(self) -> None:
        """Close the database."""
        self._connection.close()

    def rows(self, layout: Layout, first: int, last: int) -> Iterator[tuple[Any, ...]]:
        """Yield the rowids from `first` to `last`, each with the values in the layout's order.

        All rows of a table WITHOUT ROWID, with 0. Raises sqlite3.Error or ValueError at damage.
        """
        self._compare(layout)
        names = ", ".join(f'"{column.name}"' for column in layout.columns)
        rowid = "0," if layout.without_rowid else "rowid,"
        statement = " ".join(("SELECT", rowid, names, "FROM", f'"{layout.name}"', "NOT INDEXED"))
        bounds: tuple[int, ...] = ()
        if not layout.without_rowid:
            statement += " WHERE rowid BETWEEN ? AND ?"
            bounds = (first, last)
        texts = [i for i, column in enumerate(layout.columns, 1) if column.name in JSON_COLUMNS]
        for row in self._connection.execute(statement, bounds):
            for place in texts:
                if row[place] is not None and not is_json(row[place]):
                    raise ValueError("not JSON")
            yield row

    def _compare(self, layout: Layout) -> None:
        """Raise unless SQLite sees this layout.

        Otherwise it might read a column's name as a text.
        """
        if layout.name in self._compared:
            return
        try:
            found = layout_of(self._connection, layout.name)
        except sqlite3.OperationalError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in BLOCKED:
                self.close()
                self._connection = sqlite3.connect(":memory:")  # has no table, and says so at once
            raise
        if found != layout:
            raise ValueError("a damaged statement")
        self._compared.add(layout.name)


def _is_of(header: bytes, form: Form) -> bool:
    """Return whether SQLite reads pages and texts in this form.

    In another form it finds the same number of rows, with other contents.
    """
    if len(header) < 60 or stated_page_bytes(header) != form.page_bytes:
        return False
    is_used_so = header[20] == form.page_bytes - form.usable
    return is_used_so and header[56:60] == _ENCODING_NUMBERS[form.encoding].to_bytes(4, "big")


def _is_safe(path: Path) -> bool:
    """Return whether SQLite does no harm by opening it.

    It deletes the log of an empty database.
    """
    return path.exists() and path.stat().st_size > 0


HISTORY_BYTES = 64 * 1024 * 1024
"""Bytes of the history's newest pages that are copied: it is the largest table, and dispensable."""

BOUNDS = {"history": HISTORY_BYTES}

LAST = ("history_rules", "history")
"""Tables that are copied last, in case the disk's space is short."""

RULE_EPOCHS = (
    "INSERT INTO meta (name, value) SELECT 'rule_epochs', max(epoch) FROM rules"
    " WHERE true HAVING max(epoch) > 0"
    " ON CONFLICT DO UPDATE SET value = max(value, excluded.value)"
)
"""Raises the last rule epoch to that of the rules, so that none is given twice."""

DERIVED = ("outbox_totals",)
"""Tables that can be rebuilt from others if they are empty."""

GROUP_PAGES = 64
"""Pages that are read by SQLite together, or each separately if that fails."""


@dataclass(slots=True)
class Salvage:
    """The result of salvaging a database: rows by table.

    `lost` counts unreadable rows; for a lost page, the average of the table's other pages.
    `left_out` counts readable rows beyond a bound or without space; `dropped` those whose rows in
    other tables are missing. `lost_pages` are unreadable pages of unknown tables, `numbers` those
    of the outbox that may be lost.
    """

    salvaged: dict[str, int] = field(default_factory=dict)
    lost: dict[str, int] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)
    dropped: dict[str, int] = field(default_factory=dict)
    lost_pages: int = 0
    numbers: list[LostNumbers] = field(default_factory=list)

    @property
    def found_nothing(self) -> bool:
        """Whether there was something, but no row of it is in the new database."""
        return not any(self.salvaged.values()) and bool(self.all_lost or self.lost_pages)

    @property
    def all_lost(self) -> int:
        """About how many rows are not in the new database."""
        return sum(map(_total, (self.lost, self.dropped, self.left_out)))

    def __str__(self) -> str:
        parts = [f"{_total(self.salvaged)} rows were salvaged{_by_table(self.salvaged)}"]
        parts.append(f"about {_total(self.lost)} are lost{_by_table(self.lost)}")
        if self.dropped:
            parts.append(f"{_total(self.dropped)} dropped{_by_table(self.dropped)}")
        if self.left_out:
            parts.append(f"{_total(self.left_out)} left out{_by_table(self.left_out)}")
        if self.lost_pages:
            parts.append(f"{self.lost_pages} pages are of no known table")
        return ", ".join(parts)


def salvage(
    path: Path,
    target: sqlite3.Connection,
    bounds: Mapping[str, int] = BOUNDS,
    known: Sequence[str] = (),
) -> Salvage:
    """Copy what can be read of the database at `path` into `target`, and return the result.

    `target` is an empty database at the newest schema, in autocommit mode. `bounds` are bytes of
    pages by table, of which the newest are copied. `known` are statements of earlier schemas, for
    tables whose own are damaged. Damage never raises, nor does an unreadable page; if the new
    database finds no space, the rest is left out. Raises OSError if the old files cannot be opened,
    or one of them is no regular file.
    """
    odd = odd_file(path)
    if odd is not None:  # opening a FIFO would wait for a writer
        raise OSError(errno.EINVAL, "not a regular file", str(odd))
    result = Salvage()
    pages = _pages_of(path, set(tables_of(target)))
    shortcut = Shortcut(path, pages.read(1), pages.form)
    try:
        target.execute("PRAGMA foreign_keys = OFF")
        _Copy(pages, shortcut, target, bounds, result, known).run()
        drop_leftovers(target, result.dropped)
        _mend(target, result)
    except sqlite3.Error as error:
        result.left_out[str(error)] = 0
    finally:
        shortcut.close()
        pages.close()
    for table, dropped in result.dropped.items():
        result.salvaged[table] -= dropped
    return result


def _pages_of(path: Path, names: set[str]) -> Pages:
    """Return the pages of a database with some of these tables, without a foreign log.

    A log does not identify its database; SQLite applies it to any.
    """
    pages = Pages(path)
    if names.isdisjoint(_tables(pages)):
        without_log = Pages(path, with_log=False)
        if not names.isdisjoint(_tables(without_log)):
            pages.close()
            return without_log
        without_log.close()
    return pages


def _tables(pages: Pages) -> set[str]:
    return {name for kind, name, _, _ in schema_rows(pages) if kind == "table"}


class _Copy:
    """The copying of one database."""

    def __init__(
        self,
        pages: Pages,
        shortcut: Shortcut,
        target: sqlite3.Connection,
        bounds: Mapping[str, int],
        result: Salvage,
        known: Sequence[str],
    ) -> None:
        self._pages = pages
        self._known = known
        self._shortcut = shortcut
        self._target = target
        self._bounds = bounds
        self._result = result
        names = tables_of(target)
        self._new = {name: layout_of(target, name) for name in names}
        self._old: dict[str, Layout] = {}
        self._spans: list[tuple[int, int]] = []

    def run(self) -> None:
        places = self._find()
        for name in sorted(self._old, key=lambda name: name in LAST and LAST.index(name) + 1):
            if name in self._new and name not in DERIVED:
                self._copy(name, places)
        # Overflow pages have no table of their own: they were copied with their records, or lost.
        unknown = set(places.unknown) - self._pages.of_long_records
        self._result.lost_pages = len(unknown)
        if unknown or "outbox" in self._result.lost:
            self._result.numbers = lost_numbers(self._target, self._spans)

    def _find(self) -> Places:
        rows = schema_rows(self._pages)
        query = "SELECT name, rootpage, sql FROM sqlite_schema WHERE rootpage > 0"
        new = self._target.execute(query).fetchall()
        names = {name for name, _, _ in new}
        statements = [*(each for _, _, each in new if each), *self._known]
        self._old = old_layouts(
            likened(statement, statements)
            for kind, _, _, statement in rows
            if kind == "table" and statement
        )
        roots = {root: name for _, name, root, _ in rows if root}
        # Tables whose names are missing in the rest of the schema, or incomplete: the same
        # migrations give them the same root pages.
        known = set(roots.values())
        for name, root, _ in new:
            if name not in known and roots.get(root) not in names:
                roots[root] = name
        # a table whose statement is lost has the newest layout
        for name, layout in self._new.items():
            self._old.setdefault(name, layout)
        return Search(self._pages, roots, frozenset(self._old), self).places()

    def distinct(self) -> Iterator[str]:
        """Yield the tables whose pages can be recognised by their rows."""
        return (name for name, layout in self._old.items() if layout.is_distinct)

    def fits(self, name: str, number: int, page: bytes) -> bool:
        """Return whether a page with rows can be this table's, judging by the first row."""
        layout = self._old[name]
        if kind_of(page, number) not in layout.kinds:
            return False
        cells = rows_of(self._pages, page, number, limit=1)
        return all(layout.complete(*row) is not None for row in cells.rows) and (
            bool(cells.rows) or not cells.lost
        )

    def _copy(self, name: str, places: Places) -> None:
        result = self._result
        skipped, numbers = self._in_order(name, places.pages.get(name, []))
        insert = Insert(self._target, self._old[name], self._new[name])
        is_torn = name in places.torn
        read = sum(
            self._copy_group(name, group, insert, is_torn=is_torn)
            for group in self._groups(name, numbers)
        )
        insert.flush()
        # The number of rows of an unreadable page is unknown: the average of the others counts.
        per_page = max(1, round(read / len(numbers))) if numbers else 1
        lost = insert.lost + len(places.lost.get(name, ())) * per_page
        _note(result.salvaged, name, insert.inserted)
        _note(result.lost, name, lost + insert.refused)
        _note(result.left_out, name, self._count_cells(skipped) + insert.left_out)

    def _groups(self, name: str, numbers: list[int]) -> Iterator[tuple[list[int], int, int]]:
        """Yield groups of adjacent pages with the first and the last rowid that may be on them."""
        if self._old[name].without_rowid:
            yield numbers, *ALL
            return
        groups = [numbers[i : i + GROUP_PAGES] for i in range(0, len(numbers), GROUP_PAGES)]
        starts = [first_rowid(self._pages.read(group[0]), group[0]) for group in groups]
        for group, start, following in zip_longest(groups, starts, starts[1:]):
            yield group, start, ALL[1] if following is None else following - 1

    def _copy_group(
        self, name: str, group: tuple[list[int], int, int], insert: Insert, *, is_torn: bool
    ) -> int:
        """Copy the rows of some pages; return how many there should be.

        SQLite reads them if it finds those that the pages claim to have. Rows that it read before
        it failed are found again, which does no harm.
        """
        numbers, first, last = group
        expected = self._count_cells(numbers)
        # SQLite follows the table's tree even to wrong pages: it may read the right number of other
        # rows.
        found = None if is_torn else self._copy_by_sqlite(name, first, last, insert)
        # number and sum of the rowids are compared, since SQLite skips bad pages silently
        if found == (expected, self._sum_of_rowids(name, numbers)):
            if name == "outbox":
                # no number of the outbox is lost between these ids
                self._spans.append((first, last))
        else:
            for number in numbers:
                self._copy_page(name, number, insert)
        return expected

    def _copy_by_sqlite(
        self, name: str, first: int, last: int, insert: Insert
    ) -> tuple[int, int] | None:
        """Return how many rows SQLite found, and the sum of their rowids.

        None if it failed or sees another state.
        """
        found = total = 0
        if not self._pages.log_is_sound:
            return None
        try:
            for rowid, *row in self._shortcut.rows(self._old[name], first, last):
                insert.add(row)
                found += 1
                total += rowid
        except (sqlite3.Error, ValueError):
            return None
        return found, total

    def _copy_page(self, name: str, number: int, insert: Insert) -> None:
        layout = self._old[name]
        cells = rows_of(self._pages, self._pages.read(number), number)
        good = [row for each in cells.rows if (row := layout.complete(*each)) is not None]
        for row in good:
            insert.add(row)
        damaged = cells.lost + len(cells.rows) - len(good)
        insert.lost += damaged
        if name == "outbox" and cells.rows and not damaged:
            self._spans.append((cells.rows[0][0] or 0, cells.rows[-1][0] or 0))

    def _in_order(self, name: str, numbers: list[int]) -> tuple[list[int], list[int]]:
        """Return the pages beyond a bound, and the newest within it, in the order of their rows."""
        if not self._old[name].without_rowid:
            numbers = sorted(numbers, key=lambda n: first_rowid(self._pages.read(n), n))
        size = self._pages.form.page_bytes
        most = self._bounds.get(name, len(numbers) * size) // size
        beyond = max(0, len(numbers) - most)
        return numbers[:beyond], numbers[beyond:]

    def _sum_of_rowids(self, name: str, numbers: list[int]) -> int:
        """Return the sum of the rowids on these pages, 0 for a table WITHOUT ROWID."""
        if self._old[name].without_rowid:
            return 0
        return sum(sum(rowids(self._pages.read(number), number)) for number in numbers)

    def _count_cells(self, numbers: list[int]) -> int:
        return sum(cell_count(self._pages.read(number), number) for number in numbers)


def _mend(target: sqlite3.Connection, result: Salvage) -> None:
    """Mark as incomplete what is incomplete."""
    if result.lost_pages or "rule_memory" in result.lost:
        target.execute("UPDATE rules SET complete = 0")
    target.execute(RULE_EPOCHS)


def _note(counts: dict[str, int], name: str, count: int) -> None:
    if count:
        counts[name] = count


def _total(counts: Mapping[str, int]) -> int:
    return sum(counts.values())


def _by_table(counts: Mapping[str, int]) -> str:
    if not any(counts.values()):
        return ""
    return " (" + ", ".join(f"{name} {count}" for name, count in sorted(counts.items())) + ")"

"""How the tables of a database store their rows, from their CREATE statements."""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gateway.salvage.cells import (
    INDEX_INTERIOR,
    INDEX_LEAF,
    TABLE_LEAF,
    Value,
    children,
    kind_of,
    rows_of,
)
from gateway.salvage.pages import Pages

_TYPES: dict[str, tuple[type, ...]] = {
    "INTEGER": (int,),
    "INT": (int,),
    "REAL": (int, float),
    "TEXT": (str,),
    "BLOB": (bytes,),
}

JSON_COLUMNS = frozenset({"user_properties", "remembered", "rules"})
"""Texts that their readers parse as an array in JSON."""

DISTINCT_COLUMNS = 5
"""Columns of a record that is in no index of ours."""

MAXIMUM_SCHEMA_PAGES = 100
"""Pages of the schema's own tree that are followed."""


DAMAGED_LETTERS = 8
"""Letters by which a damaged statement may differ from one of the newest schema to count as it:
more could be another layout of the same rows."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column in the order of the stored records; `types` are those that STRICT allows."""

    name: str
    types: tuple[type, ...]
    required: bool
    default: Value

    def fits(self, value: Value) -> bool:
        """Return whether the column may hold the value."""
        if value is None:
            return not self.required
        if self.types and not isinstance(value, self.types):
            return False
        return self.name not in JSON_COLUMNS or is_json(value)


@dataclass(frozen=True, slots=True)
class Layout:
    """How a table stores its rows; `rowid` is the index of the column that equals it."""

    name: str
    columns: tuple[Column, ...]
    rowid: int | None
    without_rowid: bool

    @property
    def is_distinct(self) -> bool:
        """Whether rows are enough to tell a page of this table from one of an index."""
        return not self.without_rowid or len(self.columns) >= DISTINCT_COLUMNS

    @property
    def kinds(self) -> tuple[int, ...]:
        """The kinds of pages that hold its rows."""
        return (INDEX_LEAF, INDEX_INTERIOR) if self.without_rowid else (TABLE_LEAF,)

    def complete(self, rowid: int | None, values: list[Value]) -> list[Value] | None:
        """Return a value for each column, None if this cannot be a row of the table.

        A record is shorter if columns were added to the table later.
        """
        if len(values) > len(self.columns):
            return None
        row = [*values, *(column.default for column in self.columns[len(values) :])]
        if self.rowid is not None:
            if row[self.rowid] is not None:  # the record has only the key of its cell
                return None
            row[self.rowid] = rowid
        fits = all(column.fits(value) for column, value in zip(self.columns, row, strict=True))
        return row if fits else None


def layout_of(connection: sqlite3.Connection, table: str) -> Layout:
    """Return the layout of a table in the connection's database."""
    query = "SELECT wr FROM pragma_table_list WHERE schema = 'main' AND name = ?"
    ((without_rowid,),) = connection.execute(query, (table,)).fetchall()
    query = 'SELECT name, type, "notnull", dflt_value, pk FROM pragma_table_info(?) ORDER BY cid'
    found = connection.execute(query, (table,)).fetchall()
    key = sorted((each for each in found if each[4]), key=lambda each: each[4])
    if without_rowid:
        found = [*key, *(each for each in found if not each[4])]
    columns = tuple(
        Column(name, _TYPES.get(type_.upper(), ()), bool(required), _default(connection, default))
        for name, type_, required, default, _ in found
    )
    alias = None
    if not without_rowid and len(key) == 1 and key[0][1].upper() == "INTEGER":
        alias = found.index(key[0])
    return Layout(table, columns, alias, bool(without_rowid))


def schema_rows(pages: Pages) -> list[tuple[str, str, int, str | None]]:
    """Return (type, name, root page, statement) of the readable part of the schema."""
    found = []
    waiting, seen = [1], set[int]()
    while waiting and len(seen) < MAXIMUM_SCHEMA_PAGES:
        number = waiting.pop()
        if number in seen:
            continue
        seen.add(number)
        page = pages.read(number)
        waiting.extend(children(page, number))
        if kind_of(page, number) == TABLE_LEAF:
            found += [row for _, row in rows_of(pages, page, number).rows]
    return list(_well_formed(found))


def differs_by_damage(statement: str, sound: str | None) -> bool:
    """Return whether a few damaged bytes explain how a statement differs from a sound one."""
    if sound is None or len(statement) != len(sound):
        return False
    wrong = sum(one != other for one, other in zip(statement, sound, strict=True))
    return 0 < wrong <= DAMAGED_LETTERS


def likened(statement: str, known: Sequence[str]) -> str:
    """Return the sound statement that a damaged one resembles, else the statement itself."""
    return next((each for each in known if differs_by_damage(statement, each)), statement)


def old_layouts(statements: Iterable[str]) -> dict[str, Layout]:
    """Return the layouts of the tables that these statements create; bad ones are skipped."""
    scratch = sqlite3.connect(":memory:", isolation_level=None)
    try:
        for statement in statements:
            try:
                scratch.execute(statement)
            except (sqlite3.Error, sqlite3.Warning):
                continue
        query = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        return {name: layout_of(scratch, name) for (name,) in scratch.execute(query).fetchall()}
    finally:
        scratch.close()


def _well_formed(rows: list[list[Value]]) -> Iterable[tuple[str, str, int, str | None]]:
    for row in rows:
        match row:
            case [str(kind), str(name), str(), int(root), (str() | None) as statement]:
                yield kind, name, root, statement


def _default(connection: sqlite3.Connection, expression: str | None) -> Value:
    if expression is None:
        return None
    (value,) = connection.execute(f"SELECT {expression}").fetchone()
    result: Value = value
    return result


def is_json(value: object) -> bool:
    """Return whether a value is the text of an array in JSON."""
    try:
        return isinstance(json.loads(str(value)), list)
    except (ValueError, RecursionError):
        return False

"""What a database's tables and indexes mean, however their statements are written."""

import re
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""(?P<comment>--[^\n]*|/\*.*?(?:\*/|\Z))"""
    r"""|(?P<string>'(?:[^']|'')*')"""
    r"""|(?P<quoted>"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\])"""
    r"""|(?P<word>\w+)|(?P<other>\S)""",
    re.DOTALL,
)

_BEYOND_COLUMNS = frozenset({"autoincrement", "check", "collate", "generated", "references"})
"""Words of a table's statement for what `pragma table_xinfo` says nothing of."""

_OBJECTS = (
    "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema"
    " WHERE type IN ('table', 'index', 'trigger') AND name NOT LIKE 'sqlite_stat%'"
)


@dataclass(frozen=True, slots=True)
class TableMeaning:
    """The columns of a table by name, its keys, and what else its statement has."""

    columns: frozenset[tuple[object, ...]]
    keys: frozenset[tuple[object, ...]]
    options: frozenset[object]


def tokens(statement: str) -> tuple[str, ...]:
    """Return the words of a statement: no comments, no quotes of names, no upper case."""
    return tuple(_tokens(statement))


def meanings(connection: sqlite3.Connection) -> dict[str, object]:
    """Return by name what each table and each index that was made is; raise sqlite3.Error.

    What makes a table refuse or change rows, as a trigger does, is part of what the table is.
    """
    found: dict[str, object] = {}
    for kind, name, table, statement in connection.execute(_OBJECTS).fetchall():
        if kind == "table" and not name.startswith("sqlite_"):
            found[name] = _table(connection, name, statement)
        elif kind == "index" and statement:
            found[name] = (table, tokens(statement))
    return found


def _table(connection: sqlite3.Connection, name: str, statement: str) -> TableMeaning:
    query = "SELECT wr, strict FROM pragma_table_list WHERE schema = 'main' AND name = ?"
    options: set[object] = set(connection.execute(query, (name,)).fetchall())
    options.update(_BEYOND_COLUMNS.intersection(tokens(statement)))
    query = "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = ?"
    options.update(connection.execute(query, (name,)).fetchall())
    query = 'SELECT name, type, "notnull", dflt_value, pk, hidden FROM pragma_table_xinfo(?)'
    columns = frozenset(_column(*each) for each in connection.execute(query, (name,)).fetchall())
    return TableMeaning(columns, frozenset(_keys(connection, name)), frozenset(options))


def _column(name: str, kind: str, *others: object) -> tuple[object, ...]:
    kind = kind.upper()
    return (name.lower(), "INTEGER" if kind == "INT" else kind, *others)


def _keys(connection: sqlite3.Connection, table: str) -> Iterator[tuple[object, ...]]:
    """Yield the columns that no two rows have alike, in each of the table's unique indexes."""
    query = 'SELECT name, origin, partial FROM pragma_index_list(?) WHERE "unique"'
    for index, origin, partial in connection.execute(query, (table,)).fetchall():
        query = 'SELECT name, "desc", coll FROM pragma_index_xinfo(?) WHERE key ORDER BY seqno'
        yield origin, partial, *connection.execute(query, (index,)).fetchall()


def _tokens(statement: str) -> Iterator[str]:
    for each in _TOKEN.finditer(statement):
        text = each.group()
        if each.lastgroup == "quoted":
            quote = text[-1]
            yield text[1:-1].replace(quote * 2, quote).lower()
        elif each.lastgroup != "comment":
            yield text if each.lastgroup == "string" else text.lower()

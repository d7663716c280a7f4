"""Brings a database to the newest schema: one SQL file for each version, each applied once."""

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple, TypeVar

from gateway.errors import StartError
from gateway.salvage.form import tables_of
from gateway.storage.engine.damage import DamagedError

T = TypeVar("T")

_Statement = tuple[str, str, str, str]
"""Type, name, table name and SQL of an object in a schema."""


def migrations() -> list[tuple[int, str]]:
    """Return (version, script) of every migration in rising order, from `NNNN_<what>.sql`."""
    scripts = Path(__file__).parent.glob("*.sql")
    return sorted((int(file.name[:4]), file.read_text("utf-8")) for file in scripts)


def migrate(connection: sqlite3.Connection) -> None:
    """Apply the missing migrations, a transaction for each version.

    A copy made by another program may have lost its version number: its tables show the version.
    """
    version = _version(connection)
    newest, _ = migrations()[-1]
    if version < newest and _has_tables(connection) and not _is_of(connection, version):
        version = version_of(connection) or version
        connection.execute(f"PRAGMA user_version = {version}")
    for number, script in migrations():
        if number > version:
            connection.executescript(
                f"BEGIN IMMEDIATE;\n{script}\nPRAGMA user_version = {number};\nCOMMIT;"
            )


def check_schema(connection: sqlite3.Connection) -> list[str]:
    """Return the tables and indexes that differ from their version, if migration can go on.

    Nothing if it can be used. Raises DamagedError if a few damaged bytes explain the differences,
    or it is another program's. Raises StartError if a newer Tidegate has written it: reading it
    could lose its acknowledged rows. The version number is only four bytes that damage can change,
    so a newer schema is recognised by an unknown table, column or index beside known ones. The
    connection must be read-only: a writing one would move a log of another database into this one
    when it closes.
    """
    version = _version(connection)
    newest, _ = migrations()[-1]
    if version > newest:
        found, known = _names(connection), _model(_names)
        if found <= known or not found & known:
            raise DamagedError(f"it has schema version {version}, and not the schema of one")
        (name,) = connection.execute("SELECT file FROM pragma_database_list").fetchone()
        raise StartError(
            f"{name}: schema version {version}, this Tidegate supports up to {newest}: "
            "start the version that wrote it, or move the file away (tidegate docs upgrade)"
        )
    if not version and not _has_tables(connection):
        return []
    if _is_of(connection, version) or version_of(connection):
        return []
    different = differences(connection, version or newest)
    _refuse_damage(connection, different)
    return different


def differences(connection: sqlite3.Connection, version: int | None = None) -> list[str]:
    """Return the tables and indexes that are missing or mean something else than in a version.

    SQLite trusts an index's statement: with a damaged one it skips rows.
    """
    found = meanings(connection)
    return sorted(
        name for name, each in _model(meanings, version).items() if found.get(name) != each
    )


def version_of(connection: sqlite3.Connection) -> int:
    """Return the newest version that matches a database's tables and indexes, 0 if none does."""
    found = meanings(connection)
    for number, _ in reversed(migrations()):
        if all(found.get(name) == each for name, each in _model(meanings, number).items()):
            return number
    return 0


def earlier_statements() -> list[str]:
    """Return the CREATE statements of each version, for reading the remains of a damaged file."""
    statements: dict[str, None] = {}
    for number, _ in reversed(migrations()):
        statements.update(dict.fromkeys(_model(_table_statements, number)))
    return list(statements)


def _is_of(connection: sqlite3.Connection, version: int) -> bool:
    return version > 0 and not differences(connection, version)


def _refuse_damage(connection: sqlite3.Connection, different: list[str]) -> None:
    """Raise DamagedError unless the database is ours, and another schema explains it."""
    known = [row for number, _ in migrations() for row in _model(_statements, number)]
    for row in _statements(connection):
        if any(_differ_by_damage(row, each) for each in known):
            raise DamagedError(f"it has not the right {row[1]}")
    first = _model(_table_names, migrations()[0][0])
    if 2 * len(first & _table_names(connection)) < len(first):
        raise DamagedError(f"it has not the right {', '.join(different[:3])}")


def _model(ask: Callable[[sqlite3.Connection], T], version: int | None = None) -> T:
    """Return `ask` of an empty database at a version, by default the newest."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as model:
        for number, script in migrations():
            if version is None or number <= version:
                model.executescript(script)
        return ask(model)


def _differ_by_damage(found: _Statement, known: _Statement) -> bool:
    """Return whether a few damaged bytes in the schema explain how a table or an index differs."""
    if found[-1] == known[-1]:
        return found != known
    from gateway.salvage.layouts import differs_by_damage

    return differs_by_damage(found[-1], known[-1])


def _statements(connection: sqlite3.Connection) -> list[_Statement]:
    rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE sql <> ''")
    return rows.fetchall()


def _table_statements(connection: sqlite3.Connection) -> list[str]:
    rows = connection.execute("SELECT sql FROM sqlite_schema WHERE type = 'table' AND sql <> ''")
    return [str(sql) for (sql,) in rows]


def _table_names(connection: sqlite3.Connection) -> set[str]:
    return set(tables_of(connection))


def _has_tables(connection: sqlite3.Connection) -> bool:
    return bool(_table_names(connection))


def _names(connection: sqlite3.Connection) -> set[str]:
    """Return the names of tables and indexes, and `table.column` of each column."""
    columns = connection.execute(
        "SELECT t.name || '.' || c.name FROM pragma_table_list AS t"
        " JOIN pragma_table_info(t.name) AS c"
        " WHERE t.schema = 'main' AND t.name NOT LIKE 'sqlite_%'"
    )
    objects = connection.execute("SELECT name FROM sqlite_schema")
    return {str(name) for (name,) in (*columns, *objects)}


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


_TOKEN = re.compile(
    r"""(?P<comment>--[^\n]*|/\*.*?(?:\*/|\Z))"""
    r"""|(?P<string>'(?:[^']|'')*')"""
    r"""|(?P<quoted>"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\])"""
    r"""|(?P<word>\w+)|(?P<other>\S)""",
    re.DOTALL,
)

_BEYOND_COLUMNS = frozenset({"autoincrement", "check", "collate", "generated", "references"})
"""Words of a table's statement that `pragma table_xinfo` does not cover."""

_OBJECTS = (
    "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema"
    " WHERE type IN ('table', 'index', 'trigger') AND name NOT LIKE 'sqlite_stat%'"
)


class TableMeaning(NamedTuple):
    """The columns of a table by name, its keys, and the rest of its statement."""

    columns: frozenset[tuple[object, ...]]
    keys: frozenset[tuple[object, ...]]
    options: frozenset[object]


def tokens(statement: str) -> tuple[str, ...]:
    """Return the words of a statement: no comments, no quotes of names, no upper case."""
    return tuple(_tokens(statement))


def meanings(connection: sqlite3.Connection) -> dict[str, object]:
    """Return the meaning of each table and each explicit index by name; raise sqlite3.Error.

    What makes a table refuse or change rows, such as a trigger, is part of its meaning.
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
    """Yield the columns of each of the table's unique indexes."""
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

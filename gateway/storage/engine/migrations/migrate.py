"""Bring a database to the newest schema: one SQL file for each version, each applied once."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from gateway.errors import StartError
from gateway.storage.engine.damage import DamagedError

T = TypeVar("T")


def migrations() -> list[tuple[int, str]]:
    """Return (version, script) of every migration in rising order, from `NNNN_<what>.sql`."""
    scripts = Path(__file__).parent.glob("*.sql")
    return sorted((int(file.name[:4]), file.read_text("utf-8")) for file in scripts)


def migrate(connection: sqlite3.Connection, up_to: int | None = None) -> None:
    """Apply what the database lacks, up to a version, a transaction for each."""
    version = _version(connection)
    for number, script in migrations():
        if number > version and (up_to is None or number <= up_to):
            connection.executescript(
                f"BEGIN IMMEDIATE;\n{script}\nPRAGMA user_version = {number};\nCOMMIT;"
            )


def check_schema(connection: sqlite3.Connection) -> None:
    """Raise DamagedError where the schema is not what its version says.

    Raises StartError when a newer Tidegate has written it: reading it with less knowledge could
    lose what the newer one promised. The version alone is four bytes that damage can change: a
    newer schema has a table, a column or an index that this one does not know, beside others that
    it does. The connection may only read: one that writes would fold a log of another database
    into this one when it closes.
    """
    version = _version(connection)
    newest, _ = migrations()[-1]
    if version > newest:
        found, known = _names(connection), _model(_names)
        if found <= known or not found & known:
            raise DamagedError(f"it has schema version {version}, and not the schema of one")
        (name,) = connection.execute("SELECT file FROM pragma_database_list").fetchone()
        raise StartError(
            f"{name}: schema version {version}, this Tidegate knows up to {newest}: "
            f"start the version that wrote it, or move the file away"
        )
    if version >= 1 and (different := differences(connection, version)):
        raise DamagedError(f"it has not the right {', '.join(different[:3])}")
    if version < 1 and _statements(connection):
        raise DamagedError("it has tables, and no schema version")


def differences(connection: sqlite3.Connection, version: int | None = None) -> list[str]:
    """Return the tables and indexes that are not as the migrations make them, or not there.

    With a `version` the migrations up to that count. SQLite uses an index as its statement says: by
    a damaged one it passes over rows.
    """
    found, model = _statements(connection), _model(_statements, version)
    return sorted(name for name, each in model.items() if found.get(name) != each)


def _model(ask: Callable[[sqlite3.Connection], T], version: int | None = None) -> T:
    """Return the answer of a database that has every migration, or up to one, and nothing else."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as model:
        migrate(model, version)
        return ask(model)


def _statements(connection: sqlite3.Connection) -> dict[str, tuple[str, ...]]:
    """Return by name what each table and index is, of which table, and how it was made."""
    rows = connection.execute("SELECT name, type, tbl_name, sql FROM sqlite_schema WHERE sql <> ''")
    return {name: (*what, *statement.split()) for name, *what, statement in rows}


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

"""Bring a database to the newest schema: one SQL file for each version, each applied once."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from gateway.errors import StartError
from gateway.storage.engine.damage import DamagedError


def migrations() -> list[tuple[int, str]]:
    """Return (version, script) of every migration in rising order, from `NNNN_<what>.sql`."""
    scripts = Path(__file__).parent.glob("*.sql")
    return sorted((int(file.name[:4]), file.read_text("utf-8")) for file in scripts)


def migrate(connection: sqlite3.Connection) -> None:
    """Apply what the database lacks, a transaction for each version."""
    version = _version(connection)
    for number, script in migrations():
        if number > version:
            connection.executescript(
                f"BEGIN IMMEDIATE;\n{script}\nPRAGMA user_version = {number};\nCOMMIT;"
            )


def refuse_newer(connection: sqlite3.Connection) -> None:
    """Raise StartError when a newer Tidegate has written the database.

    Reading it with less knowledge could lose what the newer one promised. The version alone is four
    bytes that damage can change: a newer schema has a table, a column or an index that this one
    does not know. Raises DamagedError where it has none.
    """
    version = _version(connection)
    newest, _ = migrations()[-1]
    if version > newest:
        if not unknown_names(connection):
            raise DamagedError(f"it has schema version {version} and the schema of {newest}")
        (name,) = connection.execute("SELECT file FROM pragma_database_list").fetchone()
        raise StartError(
            f"{name}: schema version {version}, this Tidegate knows up to {newest}: "
            f"start the version that wrote it, or move the file away"
        )


def missing_columns(connection: sqlite3.Connection) -> list[str]:
    """Return `table.column` of all that the migrations create and this database lacks."""
    return sorted(_model(_columns) - _columns(connection))


def unknown_names(connection: sqlite3.Connection) -> list[str]:
    """Return tables, columns and indexes of this database that no migration creates."""
    found = _columns(connection) | _objects(connection)
    return sorted(found - _model(_columns) - _model(_objects))


def _model(names: Callable[[sqlite3.Connection], set[str]]) -> set[str]:
    """Return the names in a database that has every migration and nothing else."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as model:
        migrate(model)
        return names(model)


def _objects(connection: sqlite3.Connection) -> set[str]:
    return {str(name) for (name,) in connection.execute("SELECT name FROM sqlite_schema")}


def _columns(connection: sqlite3.Connection) -> set[str]:
    rows = connection.execute(
        "SELECT t.name || '.' || c.name FROM pragma_table_list AS t"
        " JOIN pragma_table_info(t.name) AS c"
        " WHERE t.schema = 'main' AND t.name NOT LIKE 'sqlite_%'"
    )
    return {str(name) for (name,) in rows}


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])

"""Gives a database the schema of an earlier version, with the rows that it holds."""

import sqlite3
from contextlib import closing
from pathlib import Path

from gateway.storage.engine.migrations.migrate import migrations

FIRST = 1
"""The version that the oldest gateways wrote."""


def make_earlier(database: Path, version: int = FIRST) -> None:
    """Write the database anew as that version had it; a column that it lacked is left out."""
    new = database.with_name("earlier")
    with closing(sqlite3.connect(new, isolation_level=None)) as connection:
        for number, script in migrations():
            if number <= version:
                connection.executescript(f"{script}\nPRAGMA user_version = {number};")
        connection.execute("ATTACH ? AS newer", (str(database),))
        connection.execute("BEGIN")
        for table in _tables(connection, "main"):
            columns = ", ".join(_columns(connection, table))
            connection.execute(
                f"INSERT INTO main.{table} ({columns}) SELECT {columns} FROM newer.{table}"
            )
        connection.execute("COMMIT")
        connection.execute("DETACH newer")
    for suffix in ("-wal", "-shm"):
        database.with_name(f"{database.name}{suffix}").unlink(missing_ok=True)
    new.rename(database)


def _tables(connection: sqlite3.Connection, schema: str) -> list[str]:
    found = connection.execute(f"SELECT name FROM {schema}.sqlite_schema WHERE type = 'table'")
    return [name for (name,) in found if not name.startswith("sqlite_")]


def _columns(connection: sqlite3.Connection, table: str) -> list[str]:
    found = connection.execute("SELECT name FROM pragma_table_info(?, 'main')", (table,))
    return [name for (name,) in found]

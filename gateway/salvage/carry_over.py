"""Copies a sound database of another schema into a new one: SQLite reads it, whatever wrote it."""

import sqlite3
from contextlib import closing
from pathlib import Path

from gateway.salvage.insert import Insert
from gateway.salvage.layouts import layout_of, tables_of
from gateway.salvage.salvage import DERIVED, Salvage


def carry_over(path: Path, target: sqlite3.Connection) -> Salvage:
    """Copy every row of the tables that `target` has, too, and say what came of it.

    `target` is an empty database at the newest schema, in autocommit mode. Raises sqlite3.Error
    where the old database cannot be read after all.
    """
    result = Salvage()
    target.execute("PRAGMA foreign_keys = OFF")
    uri = f"{path.absolute().as_uri()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as source:
        there = set(tables_of(source))
        for table in tables_of(target):
            if table in there and table not in DERIVED:
                _copy(source, target, table, result)
    return result


def _copy(
    source: sqlite3.Connection, target: sqlite3.Connection, table: str, result: Salvage
) -> None:
    old = layout_of(source, table)
    insert = Insert(target, old, layout_of(target, table))
    names = ", ".join(f'"{column.name}"' for column in old.columns)
    # Without an index: by one with a wrong entry SQLite passes over rows.
    statement = " ".join(("SELECT", names, "FROM", f'"{table}"', "NOT INDEXED"))
    rows = 0
    for row in source.execute(statement):
        insert.add(row)
        rows += 1
    insert.flush()
    if insert.inserted:
        result.salvaged[table] = insert.inserted
    if lost := rows - insert.inserted - insert.left_out:
        result.lost[table] = lost
    if insert.left_out:
        result.left_out[table] = insert.left_out

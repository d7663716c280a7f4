"""DuckDB over the Parquet files of a table, with all columns that the table has today."""

import re
from collections.abc import Iterable
from pathlib import Path

import duckdb
import pyarrow as pa

_GLOB = re.compile(r"[*?\[]")


def select(database: duckdb.DuckDBPyConnection, schema: pa.Schema, files: Iterable[str]) -> str:
    """Return the query that has all columns, also those that no file has yet.

    `files` are patterns; `escaped` gives that of one file.
    """
    types = database.from_arrow(schema.empty_table()).types
    columns = ", ".join(
        f'NULL::{kind} AS "{n}"' for n, kind in zip(schema.names, types, strict=True)
    )
    names = ", ".join(quoted(path) for path in files)
    empty = f"SELECT {columns} WHERE false"
    if not names:
        return empty
    read = f"read_parquet([{names}], union_by_name = true, hive_partitioning = true)"
    return f"{empty} UNION ALL BY NAME SELECT * FROM {read}"  # noqa: S608 - names are quoted


def escaped(path: Path) -> str:
    """Return a path as a pattern that only it matches."""
    return _GLOB.sub(r"[\g<0>]", str(path))


def quoted(value: str) -> str:
    """Return a text as SQL has it."""
    return "'" + value.replace("'", "''") + "'"

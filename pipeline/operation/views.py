"""A DuckDB file with a view of each table, as the tables are when it is written."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import duckdb
import pyarrow as pa

from pipeline.errors import JobError
from pipeline.tables import delta
from pipeline.tables.delta import Where

FORMAT = "v1.2.0"
"""The oldest DuckDB that can open the file, of those that pyproject.toml allows."""
_GLOB = re.compile(r"[*?\[]")


def write_views(root: Where, file: Path) -> list[str]:
    """Write the file, in place of one that is there, and return the names of its views.

    It names the tables' files, so it needs no extension of DuckDB's. They are shown as they are
    now: `vacuum` removes files that it names only after the time that it keeps. Raises JobError if
    it cannot be written.
    """
    temporary = file.with_name(f".{file.name}.tmp")
    _remove(temporary)
    try:
        shown = _write(root, temporary)
        temporary.replace(file)
    except duckdb.OperationalError as error:
        raise JobError(f"cannot write {file}: {error}") from error
    finally:
        _remove(temporary)
    return shown


def _remove(database: Path) -> None:
    """Remove a database and its log, which DuckDB would read into another one of this name."""
    for part in (database, database.with_name(f"{database.name}.wal")):
        part.unlink(missing_ok=True)


def _write(root: Where, temporary: Path) -> list[str]:
    shown = []
    with duckdb.connect() as database:
        database.execute(f"ATTACH {_text(str(temporary))} AS views (STORAGE_VERSION '{FORMAT}')")
        for table, schema, files in _tables(root):
            database.execute(f'CREATE VIEW views."{table}" AS {_select(database, schema, files)}')
            shown.append(table)
        database.execute("CHECKPOINT views")  # a full disk raises nothing at the end
    return shown


def _tables(root: Where) -> Iterator[tuple[str, pa.Schema, Iterable[str]]]:
    """Yield the name, columns and files, as patterns, of each table."""
    for name in delta.tables_in(root):
        found = delta.opened(root / name)
        files = [_escaped(f"{root / name}/{each['path']}") for each in delta.shown(found)]
        yield name, pa.schema(found.schema().to_arrow()), files


def _select(database: duckdb.DuckDBPyConnection, schema: pa.Schema, files: Iterable[str]) -> str:
    """Return the query that has all columns, also those that no file has yet."""
    types = database.from_arrow(schema.empty_table()).types
    columns = ", ".join(
        f'NULL::{kind} AS "{n}"' for n, kind in zip(schema.names, types, strict=True)
    )
    names = ", ".join(_text(path) for path in files)
    empty = f"SELECT {columns} WHERE false"
    if not names:
        return empty
    read = f"read_parquet([{names}], union_by_name = true)"
    return f"{empty} UNION ALL BY NAME SELECT * FROM {read}"  # noqa: S608 - names are quoted


def _escaped(path: str) -> str:
    """Return a path as a pattern that only it matches."""
    return _GLOB.sub(r"[\g<0>]", path)


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"

"""SQL by which other engines find the tables: names in a catalog for the places of Delta tables."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pipeline.errors import PipelineError

_FORMS = {1: "SCHEMA", 2: "CATALOG.SCHEMA"}
_PART = re.compile(r"[A-Za-z0-9_-]{1,128}")
"""What a name may have in every engine's quotes."""


@dataclass(frozen=True)
class Engine:
    """How an engine registers Delta tables; the statements are formats, whose values are quoted."""

    schema: str
    """What the schema is called if nobody says."""
    levels: range
    """Of how many names a schema may consist."""
    quote: str
    escape: str
    """What an apostrophe in a text becomes."""
    create_schema: str
    register: str
    scheme: str = ""
    """How each location begins."""


ENGINES = {
    "spark": Engine(
        "tidegate",
        range(1, 3),
        "`",
        r"\'",
        "CREATE SCHEMA IF NOT EXISTS {schema}",
        "CREATE TABLE IF NOT EXISTS {schema}.{table} USING DELTA LOCATION {location}",
    ),
    "trino": Engine(
        "delta.tidegate",
        range(2, 3),
        '"',
        "''",
        "CREATE SCHEMA IF NOT EXISTS {schema}",
        "CALL {catalog}.system.register_table("
        "schema_name => {last}, table_name => {name}, table_location => {location})",
    ),
    "athena": Engine(
        "tidegate",
        range(1, 2),
        "`",
        r"\'",
        "CREATE DATABASE IF NOT EXISTS {schema}",
        "CREATE EXTERNAL TABLE IF NOT EXISTS {schema}.{table} LOCATION {location}"
        " TBLPROPERTIES ('table_type' = 'DELTA')",
        "s3://",
    ),
    "duckdb": Engine(
        "tidegate",
        range(1, 3),
        '"',
        "''",
        "CREATE SCHEMA IF NOT EXISTS {schema}",
        "CREATE OR REPLACE VIEW {schema}.{table} AS SELECT * FROM delta_scan({location})",
    ),
}
"""Spark's is that of Hive's metastore, of Unity Catalog and of Databricks, too."""


def statements(
    engine: str, tables: Iterable[str], place: str, schema: str | None = None
) -> Iterator[str]:
    """Yield what registers tables that lie below a place, a URL or a path, in a schema.

    Raises PipelineError for a schema or a place that the engine does not take.
    """
    known = ENGINES[engine]
    if not place.startswith(known.scheme):
        raise PipelineError(f"{engine} reads tables at {known.scheme}… only, not at {place}")
    names = _names(engine, known.schema if schema is None else schema)
    quoted = [_quoted(name, known) for name in names]
    given = {"schema": ".".join(quoted), "catalog": quoted[0], "last": _text(names[-1], known)}
    yield f"{known.create_schema.format(**given)};"
    for table in tables:
        given |= {"table": _quoted(table, known), "name": _text(table, known)}
        given["location"] = _text(f"{place.rstrip('/')}/{table}", known)
        yield f"{known.register.format(**given)};"


def _names(engine: str, schema: str) -> list[str]:
    names, levels = schema.split("."), ENGINES[engine].levels
    if len(names) not in levels or not all(map(_PART.fullmatch, names)):
        raise PipelineError(
            f"schema {schema} is not {' or '.join(_FORMS[level] for level in levels)}, "
            f"as {engine} has them, of 1 to 128 of a-z, A-Z, 0-9, _ and - each"
        )
    return names


def _quoted(name: str, engine: Engine) -> str:
    return f"{engine.quote}{name}{engine.quote}"


def _text(value: str, engine: Engine) -> str:
    return "'" + value.replace("'", engine.escape) + "'"

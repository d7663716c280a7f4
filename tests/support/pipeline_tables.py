"""What any reader of Delta finds in the pipeline's tables."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from pipeline.tables import delta, silver_numbers

TABLES = ("bronze", "silver", "quarantine")


def rows(data: Path, table: str) -> list[dict[str, object]]:
    """Return the rows of a table below a data folder, without the number of their batch."""
    found = DeltaTable((data / "tables" / table).as_uri()).to_pyarrow_table()
    listed: list[dict[str, object]] = found.drop_columns(["batch"]).to_pylist()
    return listed


def contents(data: Path) -> dict[str, Counter[str]]:
    """Return all rows of all tables, for comparison."""
    return {
        table: Counter(json.dumps(row, default=str, sort_keys=True) for row in rows(data, table))
        for table in TABLES
    }


def known(data: Path) -> dict[str, Counter[str]]:
    """Return what the tables of the state say, for comparison of tables made at other times."""
    found = {table: rows(data, table) for table in ("files", "batches", "quarantined")}
    found["islands"] = islands(data)
    for row in found["files"]:
        del row["mtime"]
    return {
        table: Counter(json.dumps(row, default=str, sort_keys=True) for row in listed)
        for table, listed in found.items()
    }


def islands(data: Path) -> list[dict[str, object]]:
    """Return silver's islands by the table of them, those of several batches together."""
    found = delta.read_all(data / "tables" / "islands")
    listed: list[dict[str, object]] = silver_numbers.merged(
        [found.drop_columns(["batch"])]
    ).to_pylist()
    return listed


def sizes(data: Path) -> tuple[int, ...]:
    """Return the rows of bronze, silver and the quarantine."""
    return tuple(len(rows(data, table)) for table in TABLES)


def table_rows(data: Path, table: str, folder: str = "tables") -> list[dict[str, Any]]:
    """Return the rows of a Delta table below a data folder."""
    found: list[dict[str, Any]] = (
        DeltaTable((data / folder / table).as_uri()).to_pyarrow_table().to_pylist()
    )
    return found

"""What any reader of Parquet folders finds in the pipeline's tables."""

import json
from collections import Counter
from pathlib import Path

import pyarrow.dataset as ds

TABLES = ("bronze", "silver", "quarantine")


def rows(data: Path, table: str) -> list[dict[str, object]]:
    """Return the rows of a table below a data folder, without the number of their batch."""
    found = ds.dataset(data / "tables" / table, partitioning="hive").to_table()
    listed: list[dict[str, object]] = found.drop_columns(["batch"]).to_pylist()
    return listed


def contents(data: Path) -> dict[str, Counter[str]]:
    """Return all rows of all tables, for comparison."""
    return {
        table: Counter(json.dumps(row, default=str, sort_keys=True) for row in rows(data, table))
        for table in TABLES
    }


def sizes(data: Path) -> tuple[int, ...]:
    """Return the rows of bronze, silver and the quarantine."""
    return tuple(len(rows(data, table)) for table in TABLES)

"""What any reader of Delta finds in the pipeline's tables."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

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


def sizes(data: Path) -> tuple[int, ...]:
    """Return the rows of bronze, silver and the quarantine."""
    return tuple(len(rows(data, table)) for table in TABLES)


def table_rows(data: Path, table: str, folder: str = "tables") -> list[dict[str, Any]]:
    """Return the rows of a Delta table below a data folder."""
    found: list[dict[str, Any]] = (
        DeltaTable((data / folder / table).as_uri()).to_pyarrow_table().to_pylist()
    )
    return found

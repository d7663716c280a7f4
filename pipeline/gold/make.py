"""The tables that are made from silver, brought up to it for some dates."""

import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from pipeline.gold.days import GATEWAY_DAY, NODE_DAY, gateway_day, node_day
from pipeline.gold.readings import READINGS, WINDOWS, by_window, spaced
from pipeline.tables import delta, on_disk, staging
from pipeline.tables.columns import QUARANTINE, SILVER, Columns, arrow_schema
from pipeline.tables.spark_files import read_files, write_folder

DATE = "date"
FRESHNESS: Columns = (
    ("gateway_id", "string"),
    ("node", "string"),
    ("last_time", "timestamp"),
)
"""The newest event of each node, and of each gateway (`node` is null)."""

TABLES: dict[str, Columns] = {
    **dict.fromkeys(WINDOWS, READINGS),
    "gateway_day": GATEWAY_DAY,
    "node_day": NODE_DAY,
}

_QUARANTINED = "gateway_id string, date date, quarantined map<string,bigint>"


def create(root: Path) -> None:
    """Give each table its columns."""
    for table, columns in TABLES.items():
        delta.create(root / table, columns, DATE)
    delta.create(root / "freshness", FRESHNESS)


def all_dates(root: Path) -> set[str]:
    """Return the event dates that silver has."""
    found = (each.get("partition.event_date") for each in delta.files(root / "silver"))
    return {str(day) for day in found if day is not None}


def make(open_session: Callable[[], SparkSession], root: Path, dates: Iterable[str]) -> None:
    """Make the rows of these event dates anew, each table in one step."""
    wanted = sorted({date.fromisoformat(day) for day in dates if day})
    if not wanted:
        return
    spark = open_session()
    rows = _silver(spark, root, wanted)
    readings = spaced(rows).cache()
    for table, unit in WINDOWS.items():
        _swap(root, table, by_window(readings, unit), wanted)
    readings.unpersist()
    _swap(root, "node_day", node_day(rows), wanted)
    _swap(root, "gateway_day", gateway_day(rows, _quarantined(spark, root, wanted)), wanted)
    _make_freshness(root)


def _silver(spark: SparkSession, root: Path, dates: list[date]) -> DataFrame:
    folder = root / "silver"
    near = [
        folder / each["path"]
        for each in delta.files(folder)
        if each.get("partition.event_date") in dates and each["num_records"]
    ]
    return read_files(spark, folder, near, SILVER)


def _swap(root: Path, table: str, rows: DataFrame, dates: list[date]) -> None:
    """Put rows in the place of those which the table has of these dates."""
    staged = staging.stage(root)
    write_folder(rows, staged / table, partition=DATE)
    old = [each for each in delta.files(root / table) if each.get(f"partition.{DATE}") in dates]
    added = delta.adopt(staged / table, root / table, f"made-{staged.name.rpartition('-')[2]}")
    delta.commit(root / table, added, delta.removals(old, DATE))
    shutil.rmtree(staged)


def _quarantined(spark: SparkSession, root: Path, dates: list[date]) -> DataFrame:
    """Return what the quarantine holds by gateway and date of receipt, counted by reason."""
    columns = ["gateway_id", "received", "reason"]
    found = on_disk.read_columns(root / "quarantine", QUARANTINE, columns)
    counts: dict[tuple[str, date], Counter[str]] = {}
    for row in found.filter(pc.is_valid(found["received"])).to_pylist():
        day = _day(row["received"])
        if row["gateway_id"] is not None and day in dates:
            counts.setdefault((row["gateway_id"], day), Counter())[row["reason"]] += 1
    rows = [(*key, dict(reasons)) for key, reasons in counts.items()]
    return spark.createDataFrame(rows, _QUARANTINED)


def _day(received: int) -> date | None:
    try:
        return datetime.fromtimestamp(received / 1000, UTC).date()
    except (ValueError, OverflowError, OSError):
        return None


def _make_freshness(root: Path) -> None:
    parts = []
    for table, keys in (("node_day", ["gateway_id", "node"]), ("gateway_day", ["gateway_id"])):
        rows = delta.read(root / table, [*keys, "last_time"])
        newest = rows.group_by(keys).aggregate([("last_time", "max")])
        parts.append(newest.rename_columns([*keys, "last_time"]))
    schema = arrow_schema(FRESHNESS)
    both = pa.concat_tables(parts, promote_options="default").select(schema.names).cast(schema)
    delta.overwrite(root / "freshness", both)

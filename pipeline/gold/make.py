"""The tables that are made from silver, brought up to it for some dates."""

import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import date
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from pipeline.gold.days import GATEWAY_DAY, NODE_DAY, gateway_day, node_day
from pipeline.gold.readings import READINGS, WINDOWS, by_window, spaced
from pipeline.tables import delta, on_disk, staging
from pipeline.tables.columns import QUARANTINE, SILVER, Columns, arrow_schema
from pipeline.tables.quarantined import COLUMNS, Quarantined, marks_of, quarantined
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


def all_dates(root: Path, files: pa.Table) -> set[str]:
    """Return the dates of silver and the quarantine; `files` is `State.files`."""
    found = (each.get("partition.event_date") for each in delta.files(root / "silver"))
    days = {*found, *(each.day for each in _quarantine(root, files))}
    return {str(day) for day in days if day is not None}


def make(
    open_session: Callable[[], SparkSession], root: Path, dates: Iterable[str], files: pa.Table
) -> None:
    """Make the rows of these dates anew, each table in one step; `files` is `State.files`."""
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
    _swap(root, "gateway_day", gateway_day(rows, _quarantined(spark, root, wanted, files)), wanted)
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


def _quarantined(spark: SparkSession, root: Path, dates: list[date], files: pa.Table) -> DataFrame:
    """Return what the quarantine holds of these dates by gateway, counted by reason."""
    counts: dict[tuple[str, date], Counter[str]] = {}
    for gateway, day, reason in _quarantine(root, files):
        if gateway is not None and day in dates:
            counts.setdefault((gateway, day), Counter())[reason] += 1
    rows = [(*key, dict(reasons)) for key, reasons in counts.items()]
    return spark.createDataFrame(rows, _QUARANTINED)


def _quarantine(root: Path, files: pa.Table) -> Iterable[Quarantined]:
    rows = on_disk.read_columns(root / "quarantine", QUARANTINE, COLUMNS)
    return quarantined(rows, marks_of(rows, files))


def _make_freshness(root: Path) -> None:
    parts = []
    for table, keys in (("node_day", ["gateway_id", "node"]), ("gateway_day", ["gateway_id"])):
        rows = delta.read(root / table, [*keys, "last_time"])
        newest = rows.group_by(keys).aggregate([("last_time", "max")])
        parts.append(newest.rename_columns([*keys, "last_time"]))
    schema = arrow_schema(FRESHNESS)
    both = pa.concat_tables(parts, promote_options="default").select(schema.names).cast(schema)
    delta.overwrite(root / "freshness", both)

"""The tables that are made from silver, brought up to it for some dates."""

import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

from pipeline.errors import PipelineError
from pipeline.gold import carried, own
from pipeline.gold.assets import ZONES, zones
from pipeline.gold.days import GATEWAY_DAY, NODE_DAY, gateway_day, node_day
from pipeline.gold.readings import HEARD, READINGS, WINDOWS, by_window, spaced
from pipeline.tables import delta, on_disk, staging
from pipeline.tables.columns import QUARANTINE, SILVER, Columns, arrow_schema
from pipeline.tables.quarantined import COLUMNS, Quarantined, marks_of, quarantined
from pipeline.tables.spark_files import read_files, write_folder

DATE = "date"
LOCAL = "readings_local_1d"
"""Days by the time zones of gateways, where a file of assets names them."""
FRESHNESS: Columns = (
    ("gateway_id", "string"),
    ("node", "string"),
    ("last_time", "timestamp"),
    ("last_received", "timestamp"),
)
"""The newest event of each node, and of each gateway (`node` is null) with its newest receipt."""

TABLES: dict[str, Columns] = {
    **dict.fromkeys(WINDOWS, READINGS),
    "gateway_day": GATEWAY_DAY,
    "node_day": NODE_DAY,
}

TAKEN = frozenset(
    (*TABLES, LOCAL, "freshness", "assets", "runs", *on_disk.IN_DELTA, *on_disk.IN_BATCHES)
)
"""Names that no table of one's own can have."""

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
    open_session: Callable[[], SparkSession],
    root: Path,
    dates: Iterable[str],
    files: pa.Table,
    made: datetime | None = None,
    now: datetime | None = None,
    assets: pa.Table | None = None,
    queries: Mapping[str, str] | None = None,
) -> datetime | None:
    """Make the rows of these dates anew, each table in one step; `files` is `State.files`.

    What holds from a date into others is made there, too, up to `now`. `made` is when that was
    last done; returns when it was done now. With `assets` days by local time are made, too, and
    tables of one's own by `queries` (gold.queries).
    """
    wanted = sorted({date.fromisoformat(day) for day in dates if day})
    if not wanted:
        return made
    now = now or datetime.now(UTC)
    spark = open_session()
    before = carried.heard_from(root)
    rows = _silver(spark, root, wanted)
    _swap(root, "node_day", node_day(rows), wanted)
    _swap(root, "gateway_day", gateway_day(rows, _quarantined(spark, root, wanted, files)), wanted)
    _make_freshness(root)
    heard = carried.heard_from(root)
    last = carried.horizon(heard, now)
    days = carried.reached(wanted, before, heard, made, last)
    further = 1
    while days:
        ends = {end for _, end in carried.runs(days) if end < last}
        changed = _make_readings(spark, root, sorted(days), ends, heard, now)
        if assets is not None:
            _make_local(spark, root, days, heard, now, assets)
        days = carried.following(changed, further, last)
        further *= 2
    for table, query in (queries or {}).items():
        make_own(spark, root, table, query, wanted)
    return now


def make_own(spark: SparkSession, root: Path, table: str, query: str, days: list[date]) -> None:
    """Make the rows of these days of a table of one's own, of all days if its query is new."""
    if table in TAKEN:
        raise PipelineError(f"{table}.sql: {table} is a table of the pipeline itself")
    new = own.is_new(root / table, query)
    if new:
        found = (each.get("partition.event_date") for each in delta.files(root / "silver"))
        days = sorted({day for day in found if day is not None})
    _silver(spark, root, days).createOrReplaceTempView("silver")
    rows = own.rows_of(spark, table, query)
    if new:
        own.create(root / table, rows, query)
    _swap(root, table, rows.where(col(DATE).isin(days)), days)  # others would be there twice


def _make_readings(
    spark: SparkSession,
    root: Path,
    days: list[date],
    ends: set[date],
    heard: carried.Heard,
    now: datetime,
) -> set[date]:
    """Make the readings of these days; return those of `ends` whose last values changed."""
    held = {end: carried.as_rows(carried.carried_from(root, [end])) for end in ends}
    rows = _spaced(spark, root, days, heard, now).cache()
    for table, unit in WINDOWS.items():
        _swap(root, table, by_window(rows, unit, days), days)
    rows.unpersist()
    return {end for end in ends if carried.as_rows(carried.carried_from(root, [end])) != held[end]}


def _make_local(
    spark: SparkSession,
    root: Path,
    days: set[date],
    heard: carried.Heard,
    now: datetime,
    assets: pa.Table,
) -> None:
    """Make the local days that share time with these days, of which each needs three of UTC."""
    delta.create(root / LOCAL, READINGS, DATE)
    shared = sorted({day + n * carried.DAY for day in days for n in (-1, 0, 1)})
    needed = sorted({day + n * carried.DAY for day in shared for n in (-1, 0, 1)})
    by_gateway = zones(assets)
    table = pa.table([list(by_gateway), list(by_gateway.values())], schema=arrow_schema(ZONES))
    rows = _spaced(spark, root, needed, heard, now, spark.createDataFrame(table))
    _swap(root, LOCAL, by_window(rows, "day", shared, local=True), shared)


def _spaced(
    spark: SparkSession,
    root: Path,
    days: list[date],
    heard: carried.Heard,
    now: datetime,
    zoned: DataFrame | None = None,
) -> DataFrame:
    begun = carried.carried_from(root, [first - carried.DAY for first, _ in carried.runs(days)])
    times = pa.table(
        [list(heard), [int(time.timestamp() * 1000) for time in heard.values()]],
        schema=arrow_schema(HEARD),
    )
    return spaced(
        _silver(spark, root, days),
        spark.createDataFrame(begun),
        spark.createDataFrame(times),
        int(now.timestamp() * 1000),
        zoned,
    )


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
    of_node, of_gateway = ["last_time"], ["last_time", "last_received"]
    for table, keys, times in (
        ("node_day", ["gateway_id", "node"], of_node),
        ("gateway_day", ["gateway_id"], of_gateway),
    ):
        rows = delta.read(root / table, [*keys, *times])
        newest = rows.group_by(keys).aggregate([(time, "max") for time in times])
        parts.append(newest.rename_columns([*keys, *times]))
    schema = arrow_schema(FRESHNESS)
    both = pa.concat_tables(parts, promote_options="default").select(schema.names).cast(schema)
    delta.overwrite(root / "freshness", both)

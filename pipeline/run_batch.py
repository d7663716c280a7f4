"""One batch from its landing files to a commit."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql.functions import lit

from pipeline import staging, tables
from pipeline.bronze import faults, landing_rows, records
from pipeline.checkpoint import Commit, write_commit
from pipeline.columns import BRONZE
from pipeline.plan import Batch, overlapping
from pipeline.settings import Settings
from pipeline.silver import conflicts, judged, silver
from pipeline.spark_files import read_folders, write_folder


def run_batch(
    spark: SparkSession, settings: Settings, batch: Batch, earlier: Iterable[Commit]
) -> Commit:
    """Write a batch into all tables and commit it, in place of what it may have left there.

    `earlier` are the commits of lower numbers. Doing it again gives the same rows, so it may
    stop anywhere: before the commit nothing of it counts.
    """
    staged = staging.stage(settings.tables)
    _write_bronze(spark, settings.landing, batch, staged)
    ranges = tables.key_ranges(staged / "bronze")
    if ranges:
        known = overlapping(ranges, earlier)
        rows = _bronze_rows(spark, settings.tables / "bronze", batch.number, staged, known)
        _write_silver(rows, batch.number, staged)
    counts = {table: tables.count_rows(staged / table) for table in tables.TABLES}
    _put_in_place(settings.tables, batch.number, staged, counts)
    commit = Commit(batch.number, batch.files, counts, ranges)
    write_commit(settings.checkpoints, commit)
    return commit


def _write_bronze(spark: SparkSession, landing: Path, batch: Batch, staged: Path) -> None:
    """Write the records, and then, out of only the files that have any, the faults."""
    faulty = Observation()
    rows = landing_rows(spark, landing, list(batch.files))
    write_folder(records(rows, faulty), staged / "bronze")
    files = sorted(faulty.get["files"])
    if files:
        write_folder(faults(landing_rows(spark, landing, files)), staged / "quarantine")


def _write_silver(rows: DataFrame, batch: int, staged: Path) -> None:
    """Write the first row of each key and then, if there are any, the conflicting ones."""
    conflicting = Observation()
    placed = judged(rows, batch)
    write_folder(silver(placed, conflicting), staged / "silver", partition=tables.DATE)
    if conflicting.get["rows"]:
        write_folder(conflicts(placed), staged / "quarantine")


def _bronze_rows(
    spark: SparkSession, bronze: Path, batch: int, staged: Path, known: list[int]
) -> DataFrame:
    """Return the batch's rows from its staging folder and those of the known batches."""
    rows = read_folders(spark, staged, [staged / "bronze"], BRONZE)
    rows = rows.withColumn("batch", lit(batch).cast("bigint"))
    if not known:
        return rows
    folders = [bronze / f"batch={number}" for number in known]
    return rows.unionByName(read_folders(spark, bronze, folders, (*BRONZE, ("batch", "bigint"))))


def _put_in_place(root: Path, batch: int, staged: Path, rows: dict[str, int]) -> None:
    staging.discard(root, tables.batch_folders(root, batch))
    for table, count in rows.items():
        if count:
            staging.put_in_place(staged / table, tables.batch_folder(root, table, batch))
    shutil.rmtree(staged, ignore_errors=True)  # a job of Spark's may still be tidying up

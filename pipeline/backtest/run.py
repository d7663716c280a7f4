"""A back test over the tables: Spark sorts the messages, the gateway's evaluator decides."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import col, expr, lit

from gateway.where.rule import compile_rule
from pipeline.backtest.fold import Row, Sums, TopicFold
from pipeline.backtest.spark_sql import decision
from pipeline.tables import delta, on_disk
from pipeline.tables.columns import BRONZE, SILVER
from pipeline.tables.spark_files import read_files, read_folders

SUMS = (
    "gateway_id string, topic string, date string, rows bigint, sent bigint, bytes_all bigint, "
    "bytes_sent bigint, bytes_batched_all bigint, bytes_batched_sent bigint, "
    "longest_silence_ms bigint, largest_error double, alarms bigint, missed bigint"
)
_TYPES = {"string": pa.string(), "bigint": pa.int64(), "double": pa.float64()}
SCHEMA = pa.schema(
    [(name, _TYPES[kind]) for name, kind in (part.split() for part in SUMS.split(", "))]
)
COLUMNS = Row._fields[:-2]
"""Those of a message; what Spark decides of it comes after them."""
SHOWN_POINTS = 2_000
"""Readings of the worst device that the report draws."""


@dataclass(frozen=True)
class Asked:
    """What is tried, and on what."""

    rule: str
    alarm: str | None = None
    days: int | None = None
    """The last days that the tables have; all if None."""
    gateway: str | None = None


def messages(spark: SparkSession, root: Path, asked: Asked) -> DataFrame:
    """Return the messages that silver knows, each once, with payload and event time."""
    silver = _silver(spark, root, asked)
    folders = [path for path in (root / "bronze").glob("batch=*") if path.name != "batch=0"]
    if not folders:
        return spark.createDataFrame([], _row_ddl())
    bronze = read_folders(spark, root / "bronze", folders, BRONZE)
    kept = silver.select(
        "landing_file", "line", "seq", "epoch", "value",
        expr("unix_millis(event_time)").alias("event_ms"),
    )  # fmt: skip
    rows = bronze.drop("seq", "epoch").join(kept, ["landing_file", "line"])
    return rows.select(*COLUMNS, "epoch", "seq")


def day_sums(rows: DataFrame, asked: Asked) -> DataFrame:
    """Return what each topic gives on each day (SUMS)."""
    rule, alarm = asked.rule, asked.alarm
    ordered = rows.repartition("gateway_id", "topic").sortWithinPartitions(
        "gateway_id", "topic", "event_ms", "epoch", "seq"
    )

    def fold(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _, group in groupby(_rows(batches), lambda row: row[:2]):
            found = [sums._asdict() for sums in TopicFold(rule, alarm).days(group)]
            yield pa.RecordBatch.from_pylist(found, SCHEMA)

    decided = [_decided(text).alias(name) for text, name in ((rule, "rule"), (alarm, "alarm"))]
    return ordered.select(*COLUMNS, *decided).mapInArrow(fold, SUMS)


def _decided(text: str | None) -> Column:
    """Return what Spark can say of an expression by itself."""
    found = decision(compile_rule(text).expression) if text else None
    return lit(None).cast("tinyint") if found is None else found


def worst(
    rows: DataFrame, sums: list[Sums], asked: Asked
) -> tuple[str, list[tuple[int, float, bool]]]:
    """Return the topic with the largest error, and time, value and whether sent of its readings."""
    errors = [each for each in sums if each.largest_error is not None] or sums
    if not errors:
        return "", []
    topic = max(errors, key=lambda each: each.largest_error or 0.0)
    of_topic = rows.where((col("gateway_id") == topic.gateway_id) & (col("topic") == topic.topic))
    fold = TopicFold(asked.rule, None)
    points = []
    for row in of_topic.orderBy("event_ms", "epoch", "seq").drop("epoch", "seq").toLocalIterator():
        taken = Row(*row)._replace(payload=bytes(row.payload))
        sent = fold.decide(taken)
        if taken.value is not None:
            points.append((taken.event_ms, taken.value, sent))
        if len(points) >= SHOWN_POINTS:
            break
    return f"{topic.gateway_id}: {topic.topic}", points


def _rows(batches: Iterator[pa.RecordBatch]) -> Iterator[Row]:
    for batch in batches:
        yield from (
            Row(*values) for values in zip(*(c.to_pylist() for c in batch.columns), strict=True)
        )


def _silver(spark: SparkSession, root: Path, asked: Asked) -> DataFrame:
    found = [each for each in delta.files(root / "silver") if each["num_records"]]
    dates = [each["partition.event_date"] for each in found if each["partition.event_date"]]
    near = [
        root / "silver" / each["path"]
        for each in found
        if each["partition.event_date"]
        and (asked.days is None or (max(dates) - each["partition.event_date"]).days < asked.days)
    ]
    rows = read_files(spark, root / "silver", near, SILVER)
    return rows if asked.gateway is None else rows.where(col("gateway_id") == asked.gateway)


def _row_ddl() -> str:
    kinds = dict(BRONZE) | {"event_ms": "bigint", "value": "double"}
    names = (*COLUMNS, "epoch", "seq")
    return ", ".join(f"{name} {kinds[name]}" for name in names)


def has_tables(root: Path) -> bool:
    """Say whether there is something to test on."""
    return all((root / table).is_dir() for table in ("silver", *on_disk.IN_BATCHES))

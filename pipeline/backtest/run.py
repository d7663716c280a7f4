"""A back test over the tables: Spark sorts the messages, the gateway's evaluator decides."""

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import col, expr, lit

from gateway.where.rule import compile_rule
from pipeline.backtest.fold import Row, Sums, TopicFold
from pipeline.backtest.result import Point, Worst
from pipeline.backtest.spark_sql import decision
from pipeline.place import Place
from pipeline.policy import TIME_MIN
from pipeline.settings import Settings
from pipeline.tables import delta, state
from pipeline.tables.columns import BRONZE, DIGEST_BYTES, KEY, SILVER, Columns
from pipeline.tables.spark_files import read_files

SUMS = (
    "gateway_id string, topic string, date string, rows bigint, sent bigint, bytes_all bigint, "
    "bytes_sent bigint, bytes_batched_all bigint, bytes_batched_sent bigint, "
    "longest_silence_ms bigint, largest_error double, alarms bigint, missed bigint, "
    "unknown bigint, worst_ms bigint"
)
_TYPES = {"string": pa.string(), "bigint": pa.int64(), "double": pa.float64()}
SCHEMA = pa.schema(
    [(name, _TYPES[kind]) for name, kind in (part.split() for part in SUMS.split(", "))]
)
COLUMNS = Row._fields[:-2]
"""Those of a message; what Spark decides of it comes after them."""
OTHERS = ("epoch", "seq", "unit")
_OF_SILVER = {*KEY, "landing_file", "line", "part", "value", "unit", "digest"}
_OF_SILVER |= {"event_time", "event_date"}
SHOWN_POINTS = 2_000
"""Readings of the worst device that the report draws."""


@dataclass(frozen=True)
class Asked:
    """What is tried, and on what."""

    rule: str
    alarm: str | None = None
    days: int | None = None
    """The days before the newest receipt; all if None."""
    gateway: str | None = None


def messages(spark: SparkSession, settings: Settings, asked: Asked) -> DataFrame:
    """Return the messages that silver knows, each once, with payload and event time."""
    root = settings.tables
    silver = _silver(spark, root, asked)
    files = delta.files(root / "bronze")
    if not files:
        return spark.createDataFrame([], _row_ddl())
    named = [*KEY, "landing_file", "line"]
    bronze = read_files(spark, root / "bronze", files, _only(BRONZE, {*named, *COLUMNS, *OTHERS}))
    event = expr("unix_millis(event_time)").alias("event_ms")
    silver = silver.where("coalesce(part, 0) = 0")
    rows = bronze.join(silver.select(*named, "value", "unit", "digest", event), named)
    if _read_again(settings):
        digest = f"substring(unhex(sha2(payload, 256)), 1, {DIGEST_BYTES})"
        rows = rows.where(f"{digest} = digest").dropDuplicates(list(KEY))
    return rows.select(*COLUMNS, *OTHERS)


def _only(columns: Columns, wanted: set[str]) -> Columns:
    return tuple(column for column in columns if column[0] in wanted)


def _read_again(settings: Settings) -> bool:
    """Say whether bronze may have a row of a landing file twice: a file that changed is read again.

    To find such rows costs another sort of all messages.
    """
    committed = state.load(settings.tables)
    return committed.reread or not committed.count


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


def worst(rows: DataFrame, sums: list[Sums], asked: Asked) -> Worst:
    """Return the readings of the topic with the largest error around the worst moment.

    A topic of which nothing is sent at all is worse than any error.
    """
    if not sums:
        return Worst()
    sent = Counter[tuple[str, str]]()
    for each in sums:
        sent[each[:2]] += each.sent

    def badness(each: Sums) -> tuple[int, float]:
        nothing = not sent[each[:2]]
        return each.unknown if nothing else 0, each.largest_error or 0.0

    topic = max(sums, key=badness)
    of_topic = rows.where((col("gateway_id") == topic.gateway_id) & (col("topic") == topic.topic))
    ordered = of_topic.orderBy("event_ms", "epoch", "seq").drop("epoch", "seq")
    taken = (
        (Row(*row[:-1])._replace(payload=bytes(row.payload)), row.unit)
        for row in ordered.toLocalIterator()
    )
    found = around(taken, TopicFold(asked.rule, None), topic.worst_ms)
    name = f"{topic.gateway_id}: {topic.topic}"
    return found._replace(device=name, error=topic.largest_error)


def around(rows: Iterable[tuple[Row, str | None]], fold: TopicFold, moment: int | None) -> Worst:
    """Return SHOWN_POINTS readings, half of them before the moment, and the units of them."""
    before: deque[tuple[Point, str | None]] = deque(maxlen=SHOWN_POINTS // 2)
    after: list[tuple[Point, str | None]] = []
    held = None
    for row, unit in rows:
        sent = fold.decide(row)
        if row.value is None:
            continue
        into = after if moment is None or row.event_ms >= moment else before
        if into is before and len(before) == before.maxlen and before[0][0][2]:
            held = before[0][0][1]
        into.append(((row.event_ms, row.value, sent), unit))
        if len(after) + len(before) >= SHOWN_POINTS:
            break
    shown = [*before, *after]
    units = ", ".join(dict.fromkeys(unit for _, unit in shown if unit))
    return Worst("", units, moment, [point for point, _ in shown], None, held)


def _rows(batches: Iterator[pa.RecordBatch]) -> Iterator[Row]:
    for batch in batches:
        yield from (
            Row(*values) for values in zip(*(c.to_pylist() for c in batch.columns), strict=True)
        )


def _silver(spark: SparkSession, root: Place, asked: Asked) -> DataFrame:
    found = [each for each in delta.files(root / "silver") if each["num_records"]]
    dated = col("event_date").isNotNull()
    if asked.days is not None and found:
        newest = _newest_day(root, found)
        first = newest - timedelta(days=asked.days - 1)
        days = [first + timedelta(days=n) for n in range(asked.days)]
        found = delta.within(found, "event_date", days)
        dated = col("event_date").between(first, newest)
    rows = read_files(spark, root / "silver", found, _only(SILVER, _OF_SILVER)).where(dated)
    return rows if asked.gateway is None else rows.where(col("gateway_id") == asked.gateway)


def _newest_day(root: Place, files: list[dict[str, Any]]) -> date:
    """Return the day of the newest receipt, and no day that is still to come.

    A file that has a receipt to come is read for those that are not, unless others are newer.
    """
    now = datetime.now(UTC)
    now_ms = int(now.timestamp() * 1000)
    newest = TIME_MIN
    for each in sorted(files, key=lambda each: (each.get("max.received") or 0) > now_ms):
        last = each.get("max.received") or 0
        if last > now_ms:
            last = _newest_until(root, each, now_ms)
        newest = max(newest, last)
    return now.date() if newest == TIME_MIN else datetime.fromtimestamp(newest / 1000, UTC).date()


def _newest_until(root: Place, file: dict[str, Any], now_ms: int) -> int:
    """Return the newest receipt (ms) of a file of silver that is not still to come, 0 for none."""
    parts = delta.parts(root / "silver", file, ["received"])
    times = (part["received"].filter(pc.less_equal(part["received"], now_ms)) for part in parts)
    return max((pc.max(each).as_py() or 0 for each in times), default=0)


def _row_ddl() -> str:
    kinds = dict(BRONZE) | {"event_ms": "bigint", "value": "double", "unit": "string"}
    names = (*COLUMNS, *OTHERS)
    return ", ".join(f"{name} {kinds[name]}" for name in names)


def has_tables(root: Place) -> bool:
    """Say whether there is something to test on."""
    return all(delta.exists(root / table) for table in ("silver", "bronze"))

"""What each gateway and each node did in a day: DataFrames in, DataFrames out."""

from pyspark.sql import DataFrame
from pyspark.sql.functions import expr

from pipeline.tables.columns import Columns

LATE_MS = 3_600_000
"""A row that was received so long after its event is late; it is kept and counted."""

GATEWAY_DAY: Columns = (
    ("gateway_id", "string"),
    ("rows", "bigint"),
    ("bytes", "bigint"),
    ("quarantined", "map<string,bigint>"),
    ("late_rows", "bigint"),
    ("lateness_p99_ms", "bigint"),
    ("lateness_max_ms", "bigint"),
    ("resent_rows", "bigint"),
    ("resent_share", "double"),
    ("longest_silence_ms", "bigint"),
    ("restarts", "bigint"),
    ("last_time", "timestamp"),
    ("last_received", "timestamp"),
    ("date", "date"),
)
"""`quarantined` counts by reason; `restarts` are the epochs whose first number came that day."""

COUNTED = ("rows", "bytes", "late_rows", "resent_rows", "restarts")
"""Columns that are 0 for a day of which there is nothing but the quarantine."""

NODE_DAY: Columns = (
    ("gateway_id", "string"),
    ("node", "string"),
    ("rows", "bigint"),
    ("quantities", "bigint"),
    ("errors", "bigint"),
    ("lateness_p99_ms", "bigint"),
    ("resent_share", "double"),
    ("longest_silence_ms", "bigint"),
    ("battery", "double"),
    ("battery_min", "double"),
    ("last_time", "timestamp"),
    ("date", "date"),
)
"""`battery` is the last value of a quantity whose name begins so."""

_LAST = "max(least(event_time, timestamp_millis(received)))"
"""A sensor whose clock is ahead must not look fresh for ever: no event is after its receipt."""
_BATTERY = "lower(quantity) LIKE 'battery%' AND value IS NOT NULL"


def gateway_day(silver: DataFrame, quarantined: DataFrame) -> DataFrame:
    """Return GATEWAY_DAY; `quarantined` has `gateway_id`, `date` and the map."""
    silent = _silent(silver, "gateway_id")
    figures = silent.groupBy("gateway_id", "event_date").agg(
        expr("count(*)").alias("rows"),
        expr("sum(bytes)").alias("bytes"),
        expr(f"count_if(lateness_ms > {LATE_MS})").alias("late_rows"),
        expr("percentile_approx(lateness_ms, 0.99)").alias("lateness_p99_ms"),
        expr("max(lateness_ms)").alias("lateness_max_ms"),
        expr("count_if(resent)").alias("resent_rows"),
        expr("count_if(resent) / count(*)").alias("resent_share"),
        expr("max(silence)").alias("longest_silence_ms"),
        expr("CAST(size(collect_set(IF(seq = 1, epoch, NULL))) AS BIGINT)").alias("restarts"),
        expr(_LAST).alias("last_time"),
        expr("timestamp_millis(max(received))").alias("last_received"),
    )
    dated = figures.withColumnRenamed("event_date", "date")
    joined = dated.join(quarantined, ["gateway_id", "date"], "full")
    zeros: dict[str, bool | float | int | str] = dict.fromkeys(COUNTED, 0)
    return joined.fillna(zeros).select([name for name, _ in GATEWAY_DAY])


def node_day(silver: DataFrame) -> DataFrame:
    """Return NODE_DAY."""
    silent = _silent(silver.where("node IS NOT NULL"), "gateway_id, node")
    figures = silent.groupBy("gateway_id", "node", "event_date").agg(
        expr("count(*)").alias("rows"),
        expr("CAST(size(collect_set(quantity)) AS BIGINT)").alias("quantities"),
        expr("count(decode_error)").alias("errors"),
        expr("percentile_approx(lateness_ms, 0.99)").alias("lateness_p99_ms"),
        expr("count_if(resent) / count(*)").alias("resent_share"),
        expr("max(silence)").alias("longest_silence_ms"),
        expr(f"max_by(value, struct(event_time, seq)) FILTER (WHERE {_BATTERY})").alias("battery"),
        expr(f"min(value) FILTER (WHERE {_BATTERY})").alias("battery_min"),
        expr(_LAST).alias("last_time"),
    )
    dated = figures.withColumnRenamed("event_date", "date")
    return dated.select([name for name, _ in NODE_DAY])


def _silent(silver: DataFrame, of: str) -> DataFrame:
    """Return the rows with the ms since the one before of the same gateway or node that day."""
    before = (
        f"lag(unix_millis(event_time)) OVER (PARTITION BY {of}, event_date ORDER BY event_time)"
    )
    timed = silver.where("event_time IS NOT NULL")
    return timed.withColumn("silence", expr(f"unix_millis(event_time) - {before}"))

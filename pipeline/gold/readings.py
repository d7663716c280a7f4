"""Readings by sensor and window: DataFrames in, DataFrames out."""

from pyspark.sql import DataFrame
from pyspark.sql.functions import expr

from pipeline.tables.columns import Columns

WINDOWS = {"readings_1m": "minute", "readings_1h": "hour", "readings_1d": "day"}
"""Tables and the length of their windows."""

SILENT = 3
"""So many times a sensor's usual interval of the day is a gap."""

READINGS: Columns = (
    ("gateway_id", "string"),
    ("node", "string"),
    ("quantity", "string"),
    ("window_start", "timestamp"),
    ("min", "double"),
    ("max", "double"),
    ("mean", "double"),
    ("last", "double"),
    ("last_text", "string"),
    ("unit", "string"),
    ("count", "bigint"),
    ("gaps", "bigint"),
    ("states", "map<string,bigint>"),
    ("date", "date"),
)
"""`states` has the milliseconds in each state, for values that are text or boolean."""

SENSOR = "gateway_id, node, quantity"
NEEDED = (
    *("gateway_id", "node", "quantity", "event_date", "event_time", "epoch", "stream", "seq"),
    *("value", "value_text", "unit"),
)
"""The columns of silver that readings are made from; rows are kept in memory with them alone."""
_OF_DAY = f"PARTITION BY {SENSOR}, event_date"
UNITS = ("day", "hour", "minute")
_ORDER = f"ORDER BY {', '.join(UNITS)}, event_time, epoch, stream, seq"
"""That of the event times; the windows stand in it so that their sums need no sort of their own."""
_PLACE = "struct(event_time, epoch, stream, seq)"


def spaced(silver: DataFrame) -> DataFrame:
    """Return the readings of silver with their distance in ms from the ones before and after.

    `gap` says whether the silence before a reading was longer than SILENT times the sensor's
    median of that day. A reading holds until the next one, or the end of its day.
    """
    day_end = "unix_millis(CAST(date_add(event_date, 1) AS TIMESTAMP))"
    following = f"lead(unix_millis(event_time)) OVER ({_OF_DAY} {_ORDER})"
    before = f"lag(unix_millis(event_time)) OVER ({_OF_DAY} {_ORDER})"
    readings = silver.where("node IS NOT NULL AND event_time IS NOT NULL")
    windows = [f"date_trunc('{unit}', event_time) AS {unit}" for unit in UNITS]
    return (
        readings.selectExpr(*NEEDED, *windows)
        .withColumn("before", expr(f"unix_millis(event_time) - {before}"))
        .withColumn("until", expr(f"coalesce({following}, {day_end})"))
        .withColumn("usual", expr(f"percentile_approx(before, 0.5) OVER ({_OF_DAY})"))
        .withColumn("gap", expr(f"before > {SILENT} * usual"))
    )


def by_window(rows: DataFrame, unit: str) -> DataFrame:
    """Return READINGS by windows of a `minute`, an `hour` or a `day`, of `spaced` rows."""
    within = UNITS[: UNITS.index(unit) + 1]  # an hour is of one day; sums go by the rows' order
    figures = rows.groupBy("gateway_id", "node", "quantity", "event_date", *within).agg(
        expr("min(value)").alias("min"),
        expr("max(value)").alias("max"),
        expr("avg(value)").alias("mean"),
        expr(f"max_by(value, {_PLACE}) FILTER (WHERE value IS NOT NULL)").alias("last"),
        expr(f"max_by(value_text, {_PLACE}) FILTER (WHERE value_text IS NOT NULL)").alias(
            "last_text"
        ),
        expr(f"max_by(unit, {_PLACE})").alias("unit"),
        expr("count(*)").alias("count"),
        expr("count_if(gap)").alias("gaps"),
    )
    keys = ["gateway_id", "node", "quantity", "window_start"]
    named = figures.withColumnsRenamed({"event_date": "date", unit: "window_start"})
    joined = named.join(_states(rows, unit), keys, "left")
    return joined.select([name for name, _ in READINGS])


def _states(rows: DataFrame, unit: str) -> DataFrame:
    """Return the milliseconds in each state by window; a state may last over many windows."""
    windows = (
        f"sequence(date_trunc('{unit}', event_time), "
        f"date_trunc('{unit}', timestamp_millis(greatest(until - 1, unix_millis(event_time)))), "
        f"INTERVAL 1 {unit.upper()})"
    )
    split = rows.where("value_text IS NOT NULL").selectExpr(
        *SENSOR.split(", "), "value_text", "event_time", "until", f"explode({windows}) window_start"
    )
    end = f"unix_millis(window_start + INTERVAL 1 {unit.upper()})"
    begin = "greatest(unix_millis(event_time), unix_millis(window_start))"
    lasting = split.selectExpr(
        *SENSOR.split(", "),
        "window_start",
        "value_text",
        f"greatest(least(until, {end}) - {begin}, 0) lasted",
    )
    keys = [*SENSOR.split(", "), "window_start"]
    summed = lasting.groupBy(*keys, "value_text").agg(expr("sum(lasted)").alias("lasted"))
    entries = expr("map_from_entries(collect_list(struct(value_text, lasted)))").alias("states")
    return summed.groupBy(*keys).agg(entries)

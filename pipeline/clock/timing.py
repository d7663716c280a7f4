"""The time that holds for each message: a DataFrame in, a DataFrame out."""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql.functions import broadcast, expr

from pipeline.clock.spans import Correction
from pipeline.policy import believed, in_range, receipt

CORRECTION = (
    "gateway_id string, epoch string, stream string, first bigint, last bigint, "
    "offset_ms bigint, uncertainty_ms bigint"
)


_BY_GATEWAY = """corrected IS NOT NULL AND own_corrected IS NOT NULL
    AND abs(try_subtract(reading_time, time)) < abs(try_subtract(reading_time, corrected))"""
"""A reading's time is by the gateway's clock, as a bridge stamps it, if it lies nearer to what that
clock said than to what it should have said; then it is off by as much."""
_EVENT = f"""CASE WHEN {_BY_GATEWAY} THEN struct(own_corrected AS ms, 'clock' AS source)
    WHEN own IS NOT NULL THEN struct(own AS ms, 'reading' AS source)
    WHEN corrected IS NOT NULL THEN struct(corrected AS ms, 'clock' AS source)
    WHEN accepted IS NOT NULL THEN struct(accepted AS ms, 'gateway' AS source)
    WHEN latest < received THEN struct(latest AS ms, 'read' AS source)
    WHEN {in_range("received")} THEN struct(received AS ms, 'received' AS source) END"""


def timed(rows: DataFrame, known: Sequence[Correction], read_ms: int) -> DataFrame:
    """Return the rows with `event_time`, `time_source`, `time_uncertainty_ms` and what follows.

    `rows` has the key, `time`, `received` and `reading_time`; they were read at `read_ms`. Added,
    or put in place of what was there, are also `lateness_ms` and `event_date`, and columns that
    no table has. Corrections are joined by range.
    """
    offset = "offset_ms" if known else "CAST(NULL AS BIGINT)"
    sources = {
        "corrected": f"try_add(time, {offset})",
        "own": "reading_time",
        "own_corrected": f"try_add(reading_time, {offset})",
        "accepted": "time",
    }
    times = {name: expr(believed(value, read_ms)) for name, value in sources.items()}
    latest = expr(f"IF({in_range('received')}, {receipt(read_ms)}, NULL)")
    uncertainty = "IF(event.source = 'clock', uncertainty_ms, NULL)" if known else "NULL"
    # Each step is a plan to analyse, which for few rows takes longer than they do.
    result = _joined(rows, known).withColumns(times | {"latest": latest})
    return result.withColumn("event", expr(_EVENT)).withColumns(
        {
            "event_time": expr("timestamp_millis(event.ms)"),
            "time_source": expr("event.source"),
            "time_uncertainty_ms": expr(f"CAST({uncertainty} AS BIGINT)"),
            "lateness_ms": expr("received - event.ms"),
            "event_date": expr("to_date(timestamp_millis(event.ms))"),
        }
    )


def _joined(rows: DataFrame, known: Sequence[Correction]) -> DataFrame:
    if not known:
        return rows
    spans = broadcast(rows.sparkSession.createDataFrame(list(known), CORRECTION)).alias("span")
    same = " AND ".join(f"row.{name} = span.{name}" for name in ("gateway_id", "epoch", "stream"))
    condition = expr(f"{same} AND row.seq BETWEEN span.first AND span.last")
    joined = rows.alias("row").join(spans, condition, "left")
    return joined.select("row.*", "span.offset_ms", "span.uncertainty_ms")

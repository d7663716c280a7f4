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

WORK = (
    *("offset_ms", "uncertainty_ms", "corrected", "own", "own_corrected", "accepted", "latest"),
    "event",
)


def timed(rows: DataFrame, known: Sequence[Correction], read_ms: int) -> DataFrame:
    """Return the rows with `event_time`, `time_source`, `time_uncertainty_ms` and what follows.

    `rows` has the key, `time`, `received` and `reading_time`; they were read at `read_ms`. Added,
    or put in place of what was there, are also `lateness_ms` and `event_date`. Corrections are
    joined by range.
    """
    sources = {
        "corrected": "try_add(time, offset_ms)",
        "own": "reading_time",
        "own_corrected": "try_add(reading_time, offset_ms)",
        "accepted": "time",
    }
    result = (
        _joined(rows, known)
        .withColumns({name: expr(believed(value, read_ms)) for name, value in sources.items()})
        .withColumn("latest", expr(f"IF({in_range('received')}, {receipt(read_ms)}, NULL)"))
        .withColumn("event", expr(_EVENT))
    )
    return result.withColumns(
        {
            "event_time": expr("timestamp_millis(event.ms)"),
            "time_source": expr("event.source"),
            "time_uncertainty_ms": expr("IF(event.source = 'clock', uncertainty_ms, NULL)"),
            "lateness_ms": expr("received - event.ms"),
            "event_date": expr("to_date(timestamp_millis(event.ms))"),
        }
    ).drop(*WORK)


def _joined(rows: DataFrame, known: Sequence[Correction]) -> DataFrame:
    if not known:
        nothing = expr("CAST(NULL AS BIGINT)")
        return rows.withColumns({"offset_ms": nothing, "uncertainty_ms": nothing})
    spans = broadcast(rows.sparkSession.createDataFrame(list(known), CORRECTION)).alias("span")
    same = " AND ".join(f"row.{name} = span.{name}" for name in ("gateway_id", "epoch", "stream"))
    condition = expr(f"{same} AND row.seq BETWEEN span.first AND span.last")
    joined = rows.alias("row").join(spans, condition, "left")
    return joined.select("row.*", "span.offset_ms", "span.uncertainty_ms")

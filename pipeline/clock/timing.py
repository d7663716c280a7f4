"""The time that holds for each message: a DataFrame in, a DataFrame out."""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql.functions import broadcast, expr

from pipeline.clock.spans import Correction

TIME_MIN = 946_684_800_000
"""Milliseconds: 2000-01-01. Seconds mistaken for milliseconds fall below, as does a fresh clock."""
TIME_MAX = 4_102_444_799_999
"""Milliseconds: the last of 2099. Microseconds mistaken for milliseconds lie above."""

CORRECTION = (
    "gateway_id string, epoch string, stream string, first bigint, last bigint, "
    "offset_ms bigint, uncertainty_ms bigint"
)


def _sane(value: str) -> str:
    return f"({value}) BETWEEN {TIME_MIN} AND {TIME_MAX}"


_CORRECTED = f"CASE WHEN {_sane('try_add(time, offset_ms)')} THEN try_add(time, offset_ms) END"
_OWN = f"CASE WHEN {_sane('reading_time')} THEN reading_time END"
_OWN_SUM = "try_add(reading_time, offset_ms)"
_OWN_CORRECTED = f"CASE WHEN {_sane(_OWN_SUM)} THEN {_OWN_SUM} END"
_BY_GATEWAY = """corrected IS NOT NULL AND own_corrected IS NOT NULL
    AND abs(try_subtract(reading_time, time)) < abs(try_subtract(reading_time, corrected))"""
"""A reading's time is by the gateway's clock, as a bridge stamps it, if it lies nearer to what that
clock said than to what it should have said; then it is off by as much."""
_EVENT = f"""CASE WHEN {_BY_GATEWAY} THEN own_corrected
    WHEN own IS NOT NULL THEN own
    WHEN corrected IS NOT NULL THEN corrected
    WHEN {_sane("time")} THEN time
    WHEN {_sane("received")} THEN received END"""
_SOURCE = f"""CASE WHEN {_BY_GATEWAY} THEN 'clock'
    WHEN own IS NOT NULL THEN 'reading'
    WHEN corrected IS NOT NULL THEN 'clock'
    WHEN {_sane("time")} THEN 'gateway'
    WHEN {_sane("received")} THEN 'received' END"""

WORK = ("offset_ms", "uncertainty_ms", "corrected", "own", "own_corrected", "event_ms")


def timed(rows: DataFrame, known: Sequence[Correction]) -> DataFrame:
    """Return the rows with `event_time`, `time_source`, `time_uncertainty_ms` and what follows.

    `rows` has the key, `time`, `received` and `reading_time`. Added, or put in place of what
    was there, are also `lateness_ms` and `event_date`. Corrections are joined by range.
    """
    result = (
        _joined(rows, known)
        .withColumns(
            {
                "corrected": expr(_CORRECTED),
                "own": expr(_OWN),
                "own_corrected": expr(_OWN_CORRECTED),
            }
        )
        .withColumns({"event_ms": expr(_EVENT), "time_source": expr(_SOURCE)})
    )
    return result.withColumns(
        {
            "event_time": expr("timestamp_millis(event_ms)"),
            "time_uncertainty_ms": expr("IF(time_source = 'clock', uncertainty_ms, NULL)"),
            "lateness_ms": expr("received - event_ms"),
            "event_date": expr("to_date(timestamp_millis(event_ms))"),
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

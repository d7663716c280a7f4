"""What each gateway and each node did in a day, as SQL over the view `silver` of some dates."""

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

_LAST = "max(least(event_time, timezone('UTC', epoch_ms(received))))"
"""A sensor whose clock is ahead must not look fresh for ever: no event is after its receipt."""
_BATTERY = "lower(quantity) LIKE 'battery%' AND value IS NOT NULL"


_SILENT = """unix - lag(unix) OVER (PARTITION BY {of}, event_date ORDER BY unix)"""
"""The ms since the row before of the same gateway or node that day."""

GATEWAY_ROWS = f"""
WITH silent AS (
    SELECT *, {_SILENT.format(of="gateway_id")} AS silence
    FROM (SELECT *, epoch_ms(event_time) AS unix FROM silver WHERE event_time IS NOT NULL)
), figures AS (
    SELECT gateway_id, event_date AS date,
        count(*) AS rows,
        CAST(sum(bytes) AS BIGINT) AS bytes,
        count(*) FILTER (WHERE lateness_ms > {LATE_MS}) AS late_rows,
        quantile_disc(lateness_ms, 0.99) AS lateness_p99_ms,
        max(lateness_ms) AS lateness_max_ms,
        count(*) FILTER (WHERE resent) AS resent_rows,
        count(*) FILTER (WHERE resent) / count(*) AS resent_share,
        max(silence) AS longest_silence_ms,
        count(DISTINCT epoch) FILTER (WHERE seq = 1) AS restarts,
        {_LAST} AS last_time,
        timezone('UTC', epoch_ms(max(received))) AS last_received
    FROM silent GROUP BY ALL
)
SELECT * REPLACE ({", ".join(f"coalesce({name}, 0) AS {name}" for name in COUNTED)})
FROM figures FULL JOIN quarantined USING (gateway_id, date)
"""
"""The rows of GATEWAY_DAY; `quarantined` has `gateway_id`, `date` and the map."""

NODE_ROWS = f"""
WITH silent AS (
    SELECT *, {_SILENT.format(of="gateway_id, node")} AS silence
    FROM (SELECT *, epoch_ms(event_time) AS unix FROM silver
        WHERE event_time IS NOT NULL AND node IS NOT NULL)
)
SELECT gateway_id, node, event_date AS date,
    count(*) AS rows,
    count(DISTINCT quantity) AS quantities,
    count(decode_error) AS errors,
    quantile_disc(lateness_ms, 0.99) AS lateness_p99_ms,
    count(*) FILTER (WHERE resent) / count(*) AS resent_share,
    max(silence) AS longest_silence_ms,
    arg_max(value, {{'unix': unix, 'seq': seq}}) FILTER (WHERE {_BATTERY}) AS battery,
    min(value) FILTER (WHERE {_BATTERY}) AS battery_min,
    {_LAST} AS last_time
FROM silent GROUP BY ALL
"""
"""The rows of NODE_DAY."""

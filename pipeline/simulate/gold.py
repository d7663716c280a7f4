"""What the gold tables of a made-up fleet must say, by SQL of DuckDB over the truth of silver."""

from pathlib import Path

import duckdb

DAY = 86_400_000
LENGTHS = {"readings_1m": DAY // 1_440, "readings_1h": DAY // 24, "readings_1d": DAY}

_READINGS = """
CREATE TABLE silver AS SELECT * REPLACE (coalesce(instance, '') AS instance)
    FROM read_parquet(getvariable('truth'));
CREATE TABLE heard AS
    SELECT gateway_id, max(received) + getvariable('day') AS heard FROM silver GROUP BY ALL;
CREATE TABLE all_readings AS
    WITH said AS (
        SELECT gateway_id, node, quantity, instance, epoch, seq, ms, value, text, unit,
            ms // getvariable('day') AS day,
            NOT bad AND (value IS NOT NULL OR text IS NOT NULL) AS good,
            CASE WHEN quantity = 'button' THEN 'event' WHEN text IS NOT NULL THEN 'state'
                WHEN quantity = 'energy' THEN 'total' ELSE 'sample' END AS kind
        FROM silver WHERE node IS NOT NULL
    ), spaced AS (
        SELECT *, ms - lag(ms) OVER (PARTITION BY gateway_id, node, quantity, instance, day
            ORDER BY ms, epoch, seq) AS silence,
            lag({'epoch': epoch, 'seq': seq}) OVER (PARTITION BY gateway_id, node, quantity,
            instance, day ORDER BY ms, epoch, seq) AS before
        FROM said
    ), usual AS (
        SELECT gateway_id, node, quantity, instance, day,
            list_sort(list(silence))[(count(*) - 1) // 2 + 1] AS usual
        FROM spaced WHERE silence IS NOT NULL GROUP BY ALL
    )
    SELECT spaced.*, usual, coalesce(silence > 3 * usual, false) AS silent
    FROM spaced LEFT JOIN usual USING (gateway_id, node, quantity, instance, day);
CREATE TABLE lacking AS SELECT * FROM read_parquet(getvariable('lacking'));
CREATE TABLE silence AS
    WITH between_two AS (
        SELECT r.epoch, r.seq, rule FROM all_readings r JOIN lacking l
            ON silent AND l.gateway_id = r.gateway_id AND l.epoch = before.epoch
            AND l.seq > if(r.epoch = before.epoch, least(r.seq, before.seq), before.seq)
            AND (r.epoch <> before.epoch OR l.seq < greatest(r.seq, before.seq))
        UNION ALL
        SELECT r.epoch, r.seq, rule FROM all_readings r JOIN lacking l
            ON silent AND l.gateway_id = r.gateway_id AND l.epoch = r.epoch
            AND r.epoch <> before.epoch AND l.seq < r.seq
    ), because AS (
        SELECT epoch, seq, if(bool_and(rule), 'rule', 'missing') AS cause
        FROM between_two GROUP BY ALL
    )
    SELECT r.*, coalesce(cause, 'silent') AS cause
    FROM all_readings r LEFT JOIN because USING (epoch, seq) WHERE silent;
CREATE TABLE reading AS
    SELECT r.*, coalesce(cause <> 'rule', false) AS gap
    FROM all_readings r LEFT JOIN silence USING (gateway_id, epoch, seq);
CREATE TABLE unit_of_day AS
    SELECT gateway_id, node, quantity, instance, day, last(unit ORDER BY ms, epoch, seq) AS of_day
    FROM reading WHERE good AND unit IS NOT NULL GROUP BY ALL;
CREATE TABLE held AS
    WITH good AS (
        SELECT *, lead(ms) OVER sensor AS next_ms, lag(value) OVER sensor AS counted,
            ms - lag(ms) OVER sensor AS since,
            (CASE kind WHEN 'event' THEN 0 WHEN 'sample' THEN 1 ELSE 31 END)::BIGINT
                * getvariable('day') AS longest
        FROM reading JOIN heard USING (gateway_id) WHERE good
        WINDOW sensor AS (
            PARTITION BY gateway_id, node, quantity, instance ORDER BY ms, epoch, seq)
    )
    SELECT * REPLACE (if(kind = 'total' AND since <= longest, counted, NULL) AS counted),
        least(coalesce(next_ms, greatest(ms, heard)), ms + longest) AS until
    FROM good;
"""
"""Each reading with the time until which its value holds: until the next one, but a sample for a
day at most, a total or state for 31, and each for a day after the gateway was last heard."""

_SHARES = """
CREATE OR REPLACE TABLE share AS
    WITH placed AS (
        SELECT *, unnest(generate_series(ms // getvariable('length'),
            CASE WHEN getvariable('minutes') AND kind <> 'state' THEN ms // getvariable('length')
                ELSE greatest(ms, until - 1) // getvariable('length') END)) AS place
        FROM held
        UNION ALL BY NAME
        SELECT *, ms // getvariable('length') AS place, ms AS until FROM reading WHERE NOT good
    ), dated AS (
        SELECT * EXCLUDE (day), place * getvariable('length') AS begins,
            begins + getvariable('length') AS ends, begins // getvariable('day') AS day,
            ms >= begins AS fresh
        FROM placed
    )
    SELECT dated.*, of_day,
        CASE WHEN unit = '°F' AND of_day = 'C' THEN (value - 32) * 5 / 9
            WHEN unit = 'C' AND of_day = '°F' THEN value * 9 / 5 + 32 ELSE value END AS there,
        greatest(least(until, ends) - greatest(ms, begins), 0) AS lasted
    FROM dated LEFT JOIN unit_of_day USING (gateway_id, node, quantity, instance, day);
CREATE OR REPLACE TABLE state AS
    WITH summed AS (
        SELECT gateway_id, node, quantity, instance, begins, text, sum(lasted)::BIGINT AS lasted
        FROM share WHERE kind = 'state' GROUP BY ALL
    )
    SELECT gateway_id, node, quantity, instance, begins,
        list({'state': text, 'ms': lasted} ORDER BY text) AS states
    FROM summed GROUP BY ALL;
"""
"""Each reading's share of each window that it touches, in the last unit of the window's day."""

_WINDOWS = """
WITH summed AS (
    SELECT gateway_id, node, quantity, instance, begins,
        min(there) FILTER (fresh AND good) AS min,
        max(there) FILTER (fresh AND good) AS max,
        avg(there) FILTER (fresh AND good) AS mean,
        last(there ORDER BY ms, epoch, seq) FILTER (good AND value IS NOT NULL) AS last,
        last(text ORDER BY ms, epoch, seq) FILTER (good AND text IS NOT NULL) AS last_text,
        last(coalesce(of_day, unit) ORDER BY ms, epoch, seq) AS unit,
        count(*) FILTER (fresh AND good) AS count,
        count(*) FILTER (fresh AND gap) AS gaps,
        coalesce(last(kind ORDER BY ms, epoch, seq) FILTER (good), max(kind)) AS kind,
        count(*) FILTER (fresh AND NOT good) AS bad,
        sum(there * lasted) FILTER (good AND kind = 'sample')
            / nullif(sum(lasted) FILTER (good AND kind = 'sample'), 0) AS time_weighted_mean,
        sum(there * lasted) FILTER (good AND kind = 'sample') / 3600000 AS integral,
        coalesce(sum(if(value < counted, value, value - counted))
            FILTER (fresh AND counted IS NOT NULL), 0) AS increase,
        count(*) FILTER (fresh AND value < counted) AS resets,
        sum(lasted)::BIGINT AS held_ms,
        max(least(until, ends)) FILTER (good) AS held_until,
        last(ms ORDER BY ms, epoch, seq) FILTER (good) AS last_time
    FROM share
    GROUP BY ALL
)
SELECT * EXCLUDE (begins) REPLACE (
        nullif(instance, '') AS instance,
        if(kind = 'total', increase, NULL) AS increase, if(kind = 'total', resets, NULL) AS resets),
    begins AS window_start
FROM summed LEFT JOIN state USING (gateway_id, node, quantity, instance, begins)
"""

_GATEWAY_DAY = """
WITH spaced AS (
    SELECT *, ms // getvariable('day') AS day, received - ms AS late,
        ms - lag(ms) OVER (PARTITION BY gateway_id, ms // getvariable('day') ORDER BY ms) AS silence
    FROM silver
)
SELECT gateway_id, day, count(*) AS rows, sum(bytes)::BIGINT AS bytes,
    count(*) FILTER (late > 3600000) AS late_rows, max(late) AS lateness_max_ms,
    list_sort(list(late))[ceil(0.99 * count(*))::BIGINT] AS lateness_p99_ms,
    max(silence) AS longest_silence_ms, count(DISTINCT epoch) FILTER (seq = 1) AS restarts,
    max(least(ms, received)) AS last_time, max(received) AS last_received
FROM spaced GROUP BY ALL
"""

_NODE_DAY = """
WITH spaced AS (
    SELECT *, ms // getvariable('day') AS day, received - ms AS late, ms - lag(ms)
        OVER (PARTITION BY gateway_id, node, ms // getvariable('day') ORDER BY ms) AS silence
    FROM silver WHERE node IS NOT NULL
)
SELECT gateway_id, node, day, count(*) AS rows, count(DISTINCT quantity) AS quantities,
    count(*) FILTER (value IS NULL AND text IS NULL) AS errors,
    list_sort(list(late))[ceil(0.99 * count(*))::BIGINT] AS lateness_p99_ms,
    max(silence) AS longest_silence_ms, max(least(ms, received)) AS last_time
FROM spaced GROUP BY ALL
"""


_SILENCES = """
SELECT gateway_id, node, quantity, nullif(instance, '') AS instance, day, ms - silence AS begins,
    ms AS ends, usual AS usual_ms, cause
FROM silence
"""

_FRESHNESS = """
WITH heard AS (
    FROM silver SELECT gateway_id, node, least(ms, received) AS ms, NULL AS received
        WHERE node IS NOT NULL
    UNION ALL FROM silver SELECT gateway_id, NULL, least(ms, received), received
)
SELECT gateway_id, node, max(ms) AS last_time, max(received) AS last_received
FROM heard GROUP BY ALL
"""

OTHERS = {
    "gateway_day": _GATEWAY_DAY,
    "node_day": _NODE_DAY,
    "silences": _SILENCES,
    "freshness": _FRESHNESS,
}


def write_gold(truth: Path) -> None:
    """Write a Parquet file for each gold table beside `silver.parquet`, with times in ms."""
    with duckdb.connect() as database:
        database.execute("SET VARIABLE truth = $1", [str(truth / "silver.parquet")])
        database.execute("SET VARIABLE lacking = $1", [str(truth / "lacking.parquet")])
        database.execute("SET VARIABLE day = $1::BIGINT", [DAY])
        database.execute(_READINGS)
        for table, length in LENGTHS.items():
            database.execute("SET VARIABLE length = $1::BIGINT", [length])
            database.execute("SET VARIABLE minutes = $1", [table == "readings_1m"])
            database.execute(_SHARES)
            database.sql(_WINDOWS).write_parquet(str(truth / f"{table}.parquet"))
        for table, query in OTHERS.items():
            database.sql(query).write_parquet(str(truth / f"{table}.parquet"))

"""Readings by sensor and window, as SQL for DuckDB.

Times are milliseconds since 1970 here, `epoch_ms` in DuckDB's words.
"""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

from pipeline.gold.kinds import BAD, DAY_MS, HOLDS, KIND, SAMPLE, STATE, TOTAL
from pipeline.tables.columns import Columns

WINDOWS = {"readings_1m": "minute", "readings_1h": "hour", "readings_1d": "day"}
"""Tables and their windows."""
LENGTHS = {"minute": 60_000, "hour": 3_600_000, "day": DAY_MS}

SILENT = 3
"""So many times a sensor's usual interval of the day is a gap."""
STATES_MAX = 100
"""States of a window that are counted one by one, the longest; the others are OTHERS together."""
STATE_CHARACTERS = 200
"""Characters of a state's name; the rest of a longer text is left out."""
OTHERS = "(others)"
HEARD_MS = DAY_MS
"""A value holds so long after its gateway was last heard from, if nothing follows it."""

READINGS: Columns = (
    ("gateway_id", "string"),
    ("node", "string"),
    ("quantity", "string"),
    ("instance", "string"),
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
    ("kind", "string"),
    ("bad", "bigint"),
    ("time_weighted_mean", "double"),
    ("integral", "double"),
    ("increase", "double"),
    ("resets", "bigint"),
    ("held_ms", "bigint"),
    ("held_until", "timestamp"),
    ("last_time", "timestamp"),
    ("date", "date"),
)
"""`states` has the milliseconds in each state, for values that are text or boolean; `held_ms` those
for which any value is known, `held_until` the end of the last one's share of the window."""

CARRIED: Columns = (
    ("gateway_id", "string"),
    ("node", "string"),
    ("quantity", "string"),
    ("instance", "string"),
    ("event_time", "timestamp"),
    ("value", "double"),
    ("value_text", "string"),
    ("unit", "string"),
)
"""A value that holds since an earlier day."""
HEARD: Columns = (("gateway_id", "string"), ("heard_ms", "bigint"))
"""When something of a gateway was last received."""

SENSOR = ("gateway_id", "node", "quantity", "instance")
"""What names a series; `instance` is null for one that is alone, and empty in between."""
_SENSOR = ", ".join(SENSOR)
_LAST_SEQ = 2**63 - 1  # a value that is carried stands behind the reading that it is of

_READ = f"""
SELECT gateway_id, node, quantity, coalesce(instance, '') AS instance, epoch_ms(event_time) AS ms,
    epoch, stream, seq, value, value_text, unit, NOT {BAD} AS fine, true AS own
FROM silver WHERE node IS NOT NULL AND event_time IS NOT NULL
UNION ALL
SELECT gateway_id, node, quantity, coalesce(instance, '') AS instance, epoch_ms(event_time) AS ms,
    '' AS epoch, '' AS stream, {_LAST_SEQ} AS seq, value, value_text, unit, true AS fine,
    false AS own
FROM carried
"""
_TYPED = f"""
SELECT {_SENSOR}, ms, value, value_text, unit, own, heard_ms, zone, {{day}} AS day,
    fine AND (value IS NOT NULL OR value_text IS NOT NULL) AS good, {KIND} AS kind,
    row_number() OVER (PARTITION BY {_SENSOR} ORDER BY ms, epoch, stream, seq) AS place
FROM ({_READ}) LEFT JOIN heard USING (gateway_id) LEFT JOIN zones USING (gateway_id)
"""
_PLACED = f"""
SELECT *, IF(own, ms - lag(ms) OVER (PARTITION BY {_SENSOR}, day ORDER BY place), NULL) AS before
FROM ({_TYPED})
"""
_OF_DAYS = f"""
SELECT {_SENSOR}, day, quantile_disc(before, 0.5) AS usual,
    arg_max(unit, place) FILTER (WHERE good AND unit IS NOT NULL) AS of_day
FROM placed GROUP BY ALL
"""
_NEXT = f"OVER (PARTITION BY {_SENSOR}, good ORDER BY place)"
_COUNTED = f"OVER (PARTITION BY {_SENSOR}, good, kind ORDER BY place)"
_FOLLOWED = f"""
SELECT *, lead(ms) {_NEXT} AS next_ms, lead(day) {_NEXT} AS next_day,
    lead(of_day) {_NEXT} AS next_of_day, lag(value) {_COUNTED} AS last_value,
    lag(unit) {_COUNTED} AS last_unit
FROM placed JOIN of_days USING ({_SENSOR}, day)
"""


def spaced(now_ms: int, *, local: bool = False) -> list[str]:
    """Return what makes the table `spaced`: readings, each with the time `until` which it holds.

    They are those of `silver` and of `carried` (CARRIED). Days are those of UTC, or `local` ones
    by the `zones` (assets.ZONES) of gateways. The time is the next reading of the sensor, but at
    most HOLDS, and for a sensor's last reading at most `now_ms` and HEARD_MS after its gateway
    was `heard` from. `gap` says whether the silence before a reading was longer than SILENT times
    the sensor's median of that day.
    """
    day = _utc(f"date_trunc('day', {_local('ms')})") if local else _floor("ms", DAY_MS)
    end = f"greatest(ms, least({now_ms}, coalesce(heard_ms, ms) + {HEARD_MS}))"
    return [
        f"CREATE OR REPLACE TEMP TABLE placed AS {_PLACED.format(day=day)}",
        f"CREATE OR REPLACE TEMP TABLE of_days AS {_OF_DAYS}",
        f"""CREATE OR REPLACE TEMP TABLE spaced AS
        SELECT *, before > {SILENT} * usual AS gap,
            IF(good, least(coalesce(next_ms, {end}), ms + {HOLDS}), ms) AS until,
            converted(last_value, last_unit, unit) AS counted
        FROM ({_FOLLOWED})""",
        "DROP TABLE placed",
    ]


_APART = """CASE WHEN unit IS NULL OR of_day IS NULL OR unit = of_day THEN ''
    WHEN known(unit).dimension = known(of_day).dimension THEN ''
    ELSE coalesce(known(unit).dimension, unit) END"""
"""What tells readings of a sensor apart whose units cannot be converted; mostly nothing."""
_UNIT_HERE = "IF(apart = '', coalesce(of_day, unit), coalesce(known(unit).base, unit))"
_KEYS = f"{_SENSOR}, date, window_start, apart"
_LASTED = f"kind = '{SAMPLE}' AND value IS NOT NULL"
_FRESH = "fresh AND good"
_FIGURES = f"""
SELECT {_KEYS},
    min(value) FILTER (WHERE {_FRESH}) AS min,
    max(value) FILTER (WHERE {_FRESH}) AS max,
    avg(value) FILTER (WHERE {_FRESH}) AS mean,
    arg_max(value, place) FILTER (WHERE good AND value IS NOT NULL) AS last,
    arg_max(value_text, place) FILTER (WHERE good AND value_text IS NOT NULL) AS last_text,
    arg_max(unit, place) AS unit,
    count(*) FILTER (WHERE {_FRESH}) AS count,
    count(*) FILTER (WHERE fresh AND gap) AS gaps,
    coalesce(arg_max(kind, place) FILTER (WHERE good), max(kind)) AS kind,
    count(*) FILTER (WHERE fresh AND NOT good) AS bad,
    sum(value * lasted) FILTER (WHERE {_LASTED}) AS weighed,
    sum(lasted) FILTER (WHERE {_LASTED}) AS weight,
    sum(risen) FILTER (WHERE {_FRESH}) AS risen,
    count(*) FILTER (WHERE {_FRESH} AND reset) AS resets,
    CAST(sum(lasted) AS BIGINT) AS held_ms,
    max("end") FILTER (WHERE good) AS held_until,
    max(ms) FILTER (WHERE good) AS last_time
FROM pieces GROUP BY {_KEYS}
"""
_STATES = f"""
WITH summed AS (
    SELECT {_KEYS}, substring(value_text, 1, {STATE_CHARACTERS}) AS state, sum(lasted) AS lasted
    FROM pieces WHERE good AND kind = '{STATE}' GROUP BY ALL
), ranked AS (
    SELECT *, row_number() OVER (PARTITION BY {_KEYS} ORDER BY lasted DESC, state) AS rank
    FROM summed
), bounded AS (
    SELECT {_KEYS}, IF(rank <= {STATES_MAX}, state, '{OTHERS}') AS state,
        CAST(sum(lasted) AS BIGINT) AS lasted, min(rank) AS rank
    FROM ranked GROUP BY ALL
)
SELECT {_KEYS}, MAP(list(state ORDER BY rank), list(lasted ORDER BY rank)) AS states
FROM bounded GROUP BY ALL
"""
"""The milliseconds in each state by window, STATES_MAX of them and OTHERS."""
BY_WINDOW = f"""
SELECT * REPLACE (
        nullif(instance, '') AS instance,
        {{window_start}} AS window_start,
        {{held_until}} AS held_until,
        {{last_time}} AS last_time,
        IF(kind = '{TOTAL}', resets, NULL) AS resets
    ),
    weighed / nullif(weight, 0) AS time_weighted_mean,
    weighed / 3600000 AS integral,
    IF(kind = '{TOTAL}', coalesce(risen, 0), NULL) AS increase
FROM ({_FIGURES}) LEFT JOIN ({_STATES}) USING ({_KEYS})
""".format(**{
    name: f"timezone('UTC', epoch_ms({name}))"
    for name in ("window_start", "held_until", "last_time")
})  # fmt: skip
"""The rows of READINGS of the table `pieces`. A window without a reading has a row if a value holds
in it, but for minutes in which a number does."""


def pieces(unit: str, dates: Sequence[date], *, local: bool = False) -> list[str]:
    """Return what makes the table `pieces`: each reading's share of each window that it touches.

    Windows are minutes, hours or days of these dates; with `local` days of zones, and the dates
    are theirs. Values are in the unit of that day.
    """
    windows = _Local() if local else _Utc(LENGTHS[unit])
    listed = ", ".join(f"DATE '{day}'" for day in dates)
    here = f"""CASE WHEN date = {windows.date_of("day")} THEN of_day
        WHEN window_start >= next_day THEN next_of_day END"""
    touched = _touched(unit, dates, windows)
    return [
        f"""CREATE OR REPLACE TEMP TABLE pieces AS
        WITH shares AS (
            SELECT * EXCLUDE (of_day), {here} AS of_day,
                own AND window_start = first_start AS fresh,
                least(until, {windows.after("window_start")}) AS "end"
            FROM (SELECT *, {windows.date_of("window_start")} AS date FROM ({touched}))
            WHERE date IN ({listed})
        ), apart AS (
            SELECT *, greatest("end" - greatest(ms, window_start), 0) AS lasted,
                {_APART} AS apart, {_UNIT_HERE} AS here,
                IF(kind = '{TOTAL}', IF(value < counted, value, value - counted), NULL) AS risen,
                coalesce(value < counted, false) AS reset
            FROM shares
        )
        SELECT {_KEYS}, place, ms, value_text, kind, good, gap, fresh, "end", lasted, reset,
            converted(value, unit, here) AS value, converted(risen, unit, here) AS risen,
            here AS unit
        FROM apart"""
    ]


def _touched(unit: str, dates: Sequence[date], windows: "_Utc") -> str:
    """Return the query of readings by the `window_start` of each window that they touch."""
    start = windows.start_of("ms")
    begin = f"greatest(first_start, {windows.midnight(min(dates))})"
    end = windows.midnight(max(dates) + timedelta(days=1))
    crosses = f"until > {windows.after('first_start')}"
    if unit == "minute":  # of a number a minute would say no more than the hour
        crosses += f" AND kind = '{STATE}'"
    held = windows.starts(begin, f"least(until, {end}) - 1")
    starts = f"IF(until > {begin} AND {crosses}, {held}, [first_start])"
    return f"""SELECT *, unnest({starts}) AS window_start
        FROM (SELECT *, {start} AS first_start FROM spaced)"""


def _floor(ms: str, length: int) -> str:
    return f"({ms} - {ms} % {length})"


def _local(ms: str) -> str:
    """Return the time that clocks of a row's `zone` show, without a zone."""
    return f"timezone(coalesce(zone, 'UTC'), timezone('UTC', epoch_ms({ms})))"


def _utc(time: str) -> str:
    return f"epoch_ms(timezone(coalesce(zone, 'UTC'), {time}))"


class _Utc:
    """Windows of one length, as SQL."""

    def __init__(self, length: int) -> None:
        self._length = length

    def midnight(self, day: date) -> str:
        """Return where a date begins."""
        return str(int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() * 1000))

    def start_of(self, ms: str) -> str:
        """Return where the window begins in which a time is."""
        return _floor(ms, self._length)

    def after(self, start: str) -> str:
        """Return where the window behind one begins."""
        return f"({start} + {self._length})"

    def starts(self, first: str, last: str) -> str:
        """Return the starts of the windows from one that begins at `first` to that of `last`."""
        return f"range({first}, greatest({first}, {last}) + 1, {self._length})"

    def date_of(self, start: str) -> str:
        """Return the date of a window."""
        return f"CAST(epoch_ms({start}) AS DATE)"


class _Local(_Utc):
    """Days by a gateway's zone, of which some have 23 or 25 hours."""

    def __init__(self) -> None:
        super().__init__(DAY_MS)

    def midnight(self, day: date) -> str:
        return _utc(f"TIMESTAMP '{day.isoformat()}'")

    def start_of(self, ms: str) -> str:
        return _utc(f"date_trunc('day', {_local(ms)})")

    def after(self, start: str) -> str:
        return _utc(f"{_local(start)} + INTERVAL 1 DAY")

    def starts(self, first: str, last: str) -> str:
        days = f"generate_series({_local(first)}, greatest({_local(first)}, {_local(last)}), "
        return f"list_transform({days} INTERVAL 1 DAY), lambda each: {_utc('each')})"

    def date_of(self, start: str) -> str:
        return f"CAST({_local(start)} AS DATE)"

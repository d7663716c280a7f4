"""Readings by sensor and window: DataFrames in, DataFrames out."""

from collections.abc import Sequence
from datetime import date, timedelta

from pyspark.sql import DataFrame
from pyspark.sql.functions import broadcast, col, expr

from pipeline.gold.kinds import BAD, DAY_MS, HOLDS, KIND, SAMPLE, STATE, TOTAL
from pipeline.gold.units import converted, known
from pipeline.tables.columns import Columns

WINDOWS = {"readings_1m": "minute", "readings_1h": "hour", "readings_1d": "day"}
"""Tables and the length of their windows."""

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
UNITS = ("day", "hour", "minute")
NEEDED = (
    *(*SENSOR, "event_time", "epoch", "stream", "seq"),
    *("value", "value_text", "unit", f"NOT {BAD} AS fine", "true AS own"),
)
"""The columns of silver that readings are made from; rows are kept in memory with them alone."""
_LAST_SEQ = 2**63 - 1  # a value that is carried stands behind the reading that it is of
_ORDER = (*UNITS, "event_time", "epoch", "stream", "seq")
"""That of the event times; the windows stand in it so that their sums need no sort of their own."""
_OF_SENSOR = f"(PARTITION BY {', '.join(SENSOR)} ORDER BY {', '.join(_ORDER)})"
_OF_DAY = f"(PARTITION BY {', '.join(SENSOR)}, day)"
_IN_DAY = f"(PARTITION BY {', '.join(SENSOR)}, day ORDER BY {', '.join(_ORDER[1:])})"
_PLACE = "struct(event_time, epoch, stream, seq)"
_NAMED = f"IF(good AND unit IS NOT NULL, {_PLACE}, NULL)"

_APART = f"""CASE WHEN unit IS NULL OR of_day IS NULL OR unit = of_day THEN ''
    WHEN {known("unit")}.dimension = {known("of_day")}.dimension THEN ''
    ELSE coalesce({known("unit")}.dimension, unit) END"""
"""What tells readings of a sensor apart whose units cannot be converted; mostly nothing."""
_UNIT_HERE = f"IF(apart = '', coalesce(of_day, unit), coalesce({known('unit')}.base, unit))"
_LASTED = f"kind = '{SAMPLE}' AND value IS NOT NULL"


def spaced(
    silver: DataFrame,
    carried: DataFrame,
    heard: DataFrame,
    now_ms: int,
    zones: DataFrame | None = None,
) -> DataFrame:
    """Return the readings of silver and CARRIED ones, each with the time `until` which it holds.

    Days are those of UTC, or of the `zones` (assets.ZONES) of gateways. The time is the next
    reading of the sensor, but at most HOLDS, and for a sensor's last reading at most `now_ms` and
    HEARD_MS after its gateway was last heard from. `gap` says whether the silence before a reading
    was longer than SILENT times the sensor's median of that day.
    """
    earlier = carried.selectExpr(
        *SENSOR, "event_time", "'' AS epoch", "'' AS stream", f"{_LAST_SEQ} AS seq",
        "value", "value_text", "unit", "true AS fine", "false AS own",
    )  # fmt: skip
    readings = silver.where("node IS NOT NULL AND event_time IS NOT NULL").selectExpr(*NEEDED)
    rows = readings.union(earlier).fillna("", ["instance"])  # a join would not find null
    rows = rows.join(broadcast(heard), ["gateway_id"], "left")
    windows = {unit: expr(f"date_trunc('{unit}', event_time)") for unit in UNITS}
    if zones is not None:
        rows = rows.join(broadcast(zones), ["gateway_id"], "left").fillna("UTC", ["zone"])
        windows["day"] = expr(_utc(f"date_trunc('day', {_local('event_time')})"))
    rows = rows.withColumns(
        windows
        | {
            "ms": expr("unix_millis(event_time)"),
            "good": expr("fine AND (value IS NOT NULL OR value_text IS NOT NULL)"),
            "kind": expr(KIND),
        }
    )
    ordered = rows.repartition(*SENSOR).sortWithinPartitions(*SENSOR, *_ORDER)
    following = "lead(IF(good, struct(ms, day, of_day), NULL)) IGNORE NULLS"
    counter = f"IF(good AND kind = '{TOTAL}', struct(value, unit), NULL)"
    end = f"greatest(ms, least({now_ms}, coalesce(heard_ms, ms) + {HEARD_MS}))"
    return (
        ordered.withColumn("before", expr(f"IF(own, ms - lag(ms) OVER {_IN_DAY}, NULL)"))
        .withColumns(
            {
                "usual": expr(f"percentile_approx(before, 0.5) OVER {_OF_DAY}"),
                "of_day": expr(f"max_by(unit, {_NAMED}) OVER {_OF_DAY}"),
            }
        )
        .withColumns(
            {
                "next": expr(f"{following} OVER {_OF_SENSOR}"),
                "counted": expr(f"lag({counter}) IGNORE NULLS OVER {_OF_SENSOR}"),
            }
        )
        .withColumns(
            {
                "gap": expr(f"before > {SILENT} * usual"),
                "until": expr(f"IF(good, least(coalesce(next.ms, {end}), ms + {HOLDS}), ms)"),
                "counted": expr(converted("counted.value", "counted.unit", "unit")),
            }
        )
        .drop("before", "usual", "heard_ms", "fine")
    )


def by_window(
    rows: DataFrame, unit: str, dates: Sequence[date], *, local: bool = False
) -> DataFrame:
    """Return READINGS of these dates by windows of a `minute`, an `hour` or a `day`.

    `rows` are `spaced`; with `local` by the days of zones, and the dates are theirs. A window
    without a reading has a row if a value holds in it, but for minutes in which a number does.
    """
    pieces = _pieces(rows, unit, dates, _Local() if local else _Utc(unit))
    fresh = "fresh AND good"
    figures = pieces.groupBy(*SENSOR, "date", "window_start", "apart").agg(
        expr(f"min(value) FILTER (WHERE {fresh})").alias("min"),
        expr(f"max(value) FILTER (WHERE {fresh})").alias("max"),
        expr(f"avg(value) FILTER (WHERE {fresh})").alias("mean"),
        expr(f"max_by(value, {_PLACE}) FILTER (WHERE good AND value IS NOT NULL)").alias("last"),
        expr(f"max_by(value_text, {_PLACE}) FILTER (WHERE good AND value_text IS NOT NULL)").alias(
            "last_text"
        ),
        expr(f"max_by(unit, {_PLACE})").alias("unit"),
        expr(f"count_if({fresh})").alias("count"),
        expr("count_if(fresh AND gap)").alias("gaps"),
        expr(f"coalesce(max_by(kind, {_PLACE}) FILTER (WHERE good), max(kind))").alias("kind"),
        expr("count_if(fresh AND NOT good)").alias("bad"),
        expr(f"sum(value * lasted) FILTER (WHERE {_LASTED})").alias("weighed"),
        expr(f"sum(lasted) FILTER (WHERE {_LASTED})").alias("weight"),
        expr(f"sum(risen) FILTER (WHERE {fresh})").alias("risen"),
        expr(f"count_if({fresh} AND reset)").alias("resets"),
        expr("sum(lasted)").alias("held_ms"),
        expr("timestamp_millis(max(end) FILTER (WHERE good))").alias("held_until"),
        expr("max(event_time) FILTER (WHERE good)").alias("last_time"),
    )
    keys = [*SENSOR, "date", "window_start", "apart"]
    joined = figures.join(_states(pieces, keys), keys, "left").withColumns(
        {
            "instance": expr("nullif(instance, '')"),
            "time_weighted_mean": expr("try_divide(weighed, weight)"),
            "integral": expr("weighed / 3600000"),
            "increase": expr(f"IF(kind = '{TOTAL}', coalesce(risen, 0D), NULL)"),
            "resets": expr(f"IF(kind = '{TOTAL}', resets, NULL)"),
        }
    )
    return joined.select([name for name, _ in READINGS])


def _local(time: str) -> str:
    return f"from_utc_timestamp({time}, zone)"


def _utc(time: str) -> str:
    return f"to_utc_timestamp({time}, zone)"


class _Utc:
    """Windows of one length, as SQL."""

    def __init__(self, unit: str) -> None:
        self.unit = unit
        self._length = f"INTERVAL 1 {unit.upper()}"

    def midnight(self, day: date) -> str:
        """Return where a date begins."""
        return f"TIMESTAMP '{day.isoformat()} 00:00:00'"

    def after(self, start: str) -> str:
        """Return where the window behind one begins."""
        return f"({start} + {self._length})"

    def starts(self, first: str, last: str) -> str:
        """Return the starts of the windows from one that begins at `first` to that of `last`."""
        final = f"greatest({first}, date_trunc('{self.unit}', {last}))"
        return f"sequence({first}, {final}, {self._length})"

    def date_of(self, start: str) -> str:
        """Return the date of a window."""
        return f"to_date({start})"


class _Local(_Utc):
    """Days by a gateway's zone, of which some have 23 or 25 hours."""

    def __init__(self) -> None:
        super().__init__("day")

    def midnight(self, day: date) -> str:
        return _utc(super().midnight(day))

    def after(self, start: str) -> str:
        return _utc(super().after(_local(start)))

    def starts(self, first: str, last: str) -> str:
        return f"transform({super().starts(_local(first), _local(last))}, each -> {_utc('each')})"

    def date_of(self, start: str) -> str:
        return super().date_of(_local(start))


def _pieces(rows: DataFrame, unit: str, dates: Sequence[date], windows: _Utc) -> DataFrame:
    """Return each reading's share of each window that it touches, in the unit of that day."""
    begin = f"greatest({unit}, {windows.midnight(min(dates))})"
    end = windows.midnight(max(dates) + timedelta(days=1))
    crosses = f"until > unix_millis({windows.after(unit)})"
    if unit == "minute":  # of a number a minute would say no more than the hour
        crosses += f" AND kind = '{STATE}'"
    held = windows.starts(begin, f"timestamp_millis(least(until, unix_millis({end})) - 1)")
    touched = f"explode(IF(until > unix_millis({begin}) AND {crosses}, {held}, array({unit})))"
    risen = "IF(value < counted, value, value - counted)"
    return (
        rows.withColumn("window_start", expr(touched))
        .withColumn("date", expr(windows.date_of("window_start")))
        .where(col("date").isin(list(dates)))
        .withColumns(
            {
                "fresh": expr(f"own AND window_start = {unit}"),
                "end": expr(f"least(until, unix_millis({windows.after('window_start')}))"),
                "of_day": expr(
                    f"CASE WHEN date = {windows.date_of('day')} THEN of_day"
                    " WHEN window_start >= next.day THEN next.of_day END"
                ),
            }
        )
        .withColumns(
            {
                "lasted": expr("greatest(end - greatest(ms, unix_millis(window_start)), 0)"),
                "apart": expr(_APART),
                "risen": expr(f"IF(kind = '{TOTAL}', {risen}, NULL)"),
                "reset": expr("coalesce(value < counted, false)"),
            }
        )
        .withColumn("here", expr(_UNIT_HERE))
        .withColumns(
            {
                "value": expr(converted("value", "unit", "here")),
                "risen": expr(converted("risen", "unit", "here")),
                "unit": col("here"),
            }
        )
        .drop("here", "until", "next", "counted")
    )


def _states(pieces: DataFrame, keys: list[str]) -> DataFrame:
    """Return the milliseconds in each state by window, STATES_MAX of them and OTHERS."""
    named = f"substring(value_text, 1, {STATE_CHARACTERS})"
    lasting = pieces.where(f"good AND kind = '{STATE}'").withColumn("state", expr(named))
    summed = lasting.groupBy(*keys, "state").agg(expr("sum(lasted)").alias("lasted"))
    rank = f"row_number() OVER (PARTITION BY {', '.join(keys)} ORDER BY lasted DESC, state)"
    kept = f"IF({rank} <= {STATES_MAX}, state, '{OTHERS}')"
    bounded = summed.withColumn("state", expr(kept)).groupBy(*keys, "state")
    entries = expr("map_from_entries(collect_list(struct(state, lasted)))").alias("states")
    return bounded.agg(expr("sum(lasted)").alias("lasted")).groupBy(*keys).agg(entries)

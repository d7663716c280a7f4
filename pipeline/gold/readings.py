"""Readings of sensors in order, each with the time for which its value holds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.gold.calendars import Calendar
from pipeline.gold.kinds import BAD, DAY_MS, HOLDS_MS, TOTAL, code, holds, kinds_of
from pipeline.gold.units import Units
from pipeline.tables.arrays import (
    Array,
    Coded,
    coded,
    integers,
    last_place,
    numbers,
    runs,
    spread,
    strings,
    valid,
)
from pipeline.tables.columns import Columns

SILENT = 3
"""So many times a sensor's usual interval of the day is a gap."""
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

SENSOR = ("gateway_id", "node", "quantity", "instance")
"""What names a series; `instance` is null for one that is alone."""
NEEDED = (
    *(*SENSOR, "event_time", "epoch", "stream", "seq"),
    *("value", "value_text", "unit", "quality"),
)
"""The columns of silver that readings are made from."""
NUMBERED = ("gateway_id", "epoch", "stream", "seq")
NO_KINDS: Mapping[str, str] = {}
_LAST_SEQ = 2**63 - 1  # a value that is carried stands behind the reading that it is of


@dataclass
class Readings:
    """Readings by sensor and time, and values that are carried from an earlier day.

    An array has an element a reading. `ms` and `until` are in ms, and `time` in µs.
    """

    names: tuple[Coded, ...]
    """The columns of SENSOR."""
    sensor: Array
    time: Array
    ms: Array
    day: Array
    """The day's number since 1970, by its gateway's calendar."""
    own: Array
    """Whether it was read in these days, and is not carried."""
    good: Array
    kind: Array
    value: Array
    has_value: Array
    text: pa.Array
    has_text: Array
    unit: Array
    units: Units
    of_day: Array
    """The last unit of its sensor's day, -1 for none."""
    numbered: pa.Table
    """The columns of NUMBERED."""
    gap: Array
    """Whether the silence before it was longer than SILENT times `usual_ms`."""
    usual_ms: Array
    """The sensor's median interval of the day."""
    until: Array
    """When its value ends to hold."""
    following: Array
    """The place of the sensor's next good reading, -1 for none."""
    counted: Array
    """A total's last value before, in the reading's unit."""
    has_counted: Array

    @classmethod
    def of(
        cls,
        rows: pa.Table,
        own: Array,
        heard: Mapping[str, int],
        now_ms: int,
        calendar: Calendar,
        kinds: Mapping[str, str] = NO_KINDS,
    ) -> Self:
        """Bring `joined` readings in order, and find how long each holds.

        That is until the next reading of the sensor, but at most HOLDS_MS, and for a sensor's last
        reading at most `now_ms` and HEARD_MS after its gateway was last heard from. `kinds` are
        those of quantities that have another one than by their names.
        """
        names = tuple(coded(rows[name]) for name in SENSOR)
        order, sensor = ordered(rows, names)
        rows, own = rows.take(integers(order)), own[order]
        names = tuple(Coded(each.codes[order], each.values) for each in names)
        time = numbers(rows["event_time"])
        ms = time // 1_000
        has_value, has_text = valid(rows["value"]), valid(rows["value_text"])
        bad = pc.starts_with(pc.utf8_lower(rows["quality"]), BAD)
        good = ~numbers(bad) & (has_value | has_text)
        unit = coded(rows["unit"])
        kind = kinds_of(names[2], unit, has_text & ~has_value, kinds)
        day = calendar.of(time, names[0])
        units = Units(unit.values.to_pylist())
        value = numbers(rows["value"])
        following = _next(sensor, good)
        totals = good & (kind == code(TOTAL))
        counted, has_counted = _counted(sensor, totals, ms, value, unit.codes, units)
        last = _heard(names[0], heard, ms)
        end = np.maximum(ms, np.minimum(now_ms, last + HEARD_MS))
        follows = np.where(following >= 0, ms[following], end)
        until = np.where(good, np.minimum(follows, ms + holds()[kind]), ms)
        text, of_day = rows["value_text"].combine_chunks(), _of_day(sensor, day, good, unit.codes)
        gap, usual = _gaps(sensor, day, ms, own)
        return cls(
            names, sensor, time, ms, day, own, good, kind, value, has_value, text, has_text,
            unit.codes, units, of_day, rows.select(list(NUMBERED)), gap, usual, until, following,
            counted, has_counted,
        )  # fmt: skip


def joined(silver: pa.Table, carried: pa.Table) -> tuple[pa.Table, Array]:
    """Return NEEDED of readings and of carried values, and which are the former."""
    there = pc.and_(pc.is_valid(silver["node"]), pc.is_valid(silver["event_time"]))
    readings = silver.filter(there).select(list(NEEDED))
    count = carried.num_rows
    made = {"epoch": strings([""] * count), "stream": strings([""] * count)}
    made |= {"seq": integers(np.full(count, _LAST_SEQ)), "quality": pa.nulls(count, pa.string())}
    columns = [made[name] if name in made else carried[name] for name in NEEDED]
    earlier = pa.Table.from_arrays(columns, names=list(NEEDED)).cast(readings.schema)
    own = np.arange(readings.num_rows + count) < readings.num_rows
    return pa.concat_tables([readings, earlier]), own


def ordered(rows: pa.Table, names: tuple[Coded, ...]) -> tuple[Array, Array]:
    """Return the places of rows by sensor and time, and the sensors' numbers in that order."""
    together = np.zeros(rows.num_rows, np.int64)
    for each in names:
        together = together * (len(each.values) + 1) + each.codes + 1
    keys = [numbers(rows["seq"]), coded(rows["stream"]).codes, coded(rows["epoch"]).codes]
    order = np.lexsort((*keys, numbers(rows["event_time"]), together))
    return order, np.unique(together[order], return_inverse=True)[1]


def _next(sensor: Array, good: Array) -> Array:
    """Return the place of each sensor's next good reading, -1 for none."""
    count = len(sensor)
    places = np.where(good, np.arange(count), count)
    behind = np.append(np.minimum.accumulate(places[::-1])[::-1][1:], count)
    behind = np.where(behind < count, behind, -1)
    return np.where((behind >= 0) & (sensor[behind] == sensor), behind, -1)


def _counted(
    sensor: Array, total: Array, ms: Array, value: Array, unit: Array, units: Units
) -> tuple[Array, Array]:
    """Return the total that held before a reading, in its unit, and whether there is one."""
    count = len(sensor)
    places = np.maximum.accumulate(np.where(total, np.arange(count), -1))
    before = np.append(-1, places[:-1])
    there = (before >= 0) & (sensor[before] == sensor)
    there &= ms - ms[before] <= HOLDS_MS[TOTAL]
    found, possible = units.converted(value[before], unit[before], unit)
    return found, there & possible


def _of_day(sensor: Array, day: Array, good: Array, unit: Array) -> Array:
    """Return the last unit of a sensor's day for each of its readings, -1 for none."""
    begins = runs(sensor, day)
    last = last_place(good & (unit >= 0), begins)
    return spread(np.where(last >= 0, unit[last], -1), begins, len(unit))


def _gaps(sensor: Array, day: Array, ms: Array, own: Array) -> tuple[Array, Array]:
    """Say which readings came after a silence of more than SILENT times the day's median.

    The second is that median.
    """
    begins = runs(sensor, day)
    number = spread(np.arange(len(begins)), begins, len(ms))
    before = np.diff(ms, prepend=0)
    there = own.copy()
    there[begins] = False
    places = np.flatnonzero(there)
    ordered = places[np.lexsort((before[places], number[places]))]
    counts = np.bincount(number[places], minlength=len(begins))
    firsts = np.cumsum(counts) - counts
    middle = firsts + np.maximum(counts - 1, 0) // 2  # the lower of two
    usual = np.zeros(len(begins), np.int64)
    some = counts > 0
    usual[some] = before[ordered[middle[some]]]
    of_reading = usual[number]
    return there & (before > SILENT * of_reading), of_reading


def _heard(gateway: Coded, heard: Mapping[str, int], ms: Array) -> Array:
    """Return when each reading's gateway was last heard from."""
    known = [heard.get(name) for name in gateway.values.to_pylist()]
    times = np.array([0 if each is None else each for each in known], np.int64)
    there = np.array([each is not None for each in known], bool)
    return np.where(there[gateway.codes], times[gateway.codes], ms)

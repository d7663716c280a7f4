"""What readings say of each window that their values touch."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.gold.calendars import DAY_US, Calendar, Zoned, dated, day_of, ordinal
from pipeline.gold.expected import LEFT_OUT, with_left_out
from pipeline.gold.kinds import KINDS, SAMPLE, STATE, TOTAL, code
from pipeline.gold.readings import NEEDED, READINGS, SENSOR, Readings, joined
from pipeline.gold.silences import TABLE as SILENCES
from pipeline.gold.silences import Lacking, explained
from pipeline.gold.tasks import Bucket, Job
from pipeline.tables.arrays import (
    Array,
    Coded,
    coded,
    count,
    doubles,
    highest,
    integers,
    last_place,
    lowest,
    moments,
    numbers,
    offsets,
    runs,
    spread,
    strings,
    texts,
    total,
)
from pipeline.tables.columns import arrow_schema
from pipeline.tables.task_files import TaskFiles

if TYPE_CHECKING:
    from pipeline.records.declarations import Expectation

MINUTES = "readings_1m"
LENGTHS = {MINUTES: DAY_US // 1_440, "readings_1h": DAY_US // 24, "readings_1d": DAY_US}
"""Tables and the length of their windows."""
LOCAL = "readings_local_1d"
"""Days by the time zones of gateways, where a file of assets names them."""
STATES_MAX = 100
"""States of a window that are counted one by one, the longest; the others are OTHERS together."""
STATE_CHARACTERS = 200
"""Characters of a state's name; the rest of a longer text is left out."""
OTHERS = "(others)"
PIECES = 250_000
"""Shares of windows that are computed at once, all of a sensor together."""
SCHEMA = arrow_schema(READINGS)


@dataclass(frozen=True)
class Windows(Job):
    """READINGS of some dates by minute, hour and day, or by the days of time zones."""

    columns = (*NEEDED, "part")
    keys = SENSOR
    carried: pa.Table
    """CARRIED, what holds from earlier days."""
    heard: Mapping[str, int]
    """When something of each gateway was last received, in ms."""
    now_ms: int
    dates: tuple[date, ...]
    lacking: Lacking
    zones: Mapping[str, str] | None = None
    kinds: Mapping[str, str] = field(default_factory=dict)
    """Kinds of quantities that have another one than by their names."""
    left_out: pa.Table = field(default_factory=LEFT_OUT.empty_table)
    """Readings that are not as expected, to be treated as bad ones."""
    expectations: "tuple[Expectation, ...]" = ()

    def write(self, rows: pa.Table, bucket: Bucket, out: TaskFiles) -> None:
        """Write the rows of a bucket's sensors."""
        places = bucket.of(*(self.carried[key] for key in SENSOR))
        rows = with_left_out(rows, self.left_out)
        both, own = joined(rows, self.carried.take(integers(places)))
        if not both.num_rows:
            return
        calendars = self._calendars(both)
        days = calendars.get(LOCAL) or Calendar()
        readings = Readings.of(both, own, self.heard, self.now_ms, days, self.kinds)
        silences = explained(readings, self.lacking, self.dates, self.expectations)
        if self.zones is None:
            out.add(SILENCES, silences)
        for table, calendar in calendars.items():
            minutes = table == MINUTES  # of a number a minute would say no more than the hour
            for batch in by_window(readings, calendar, self.dates, states_only=minutes):
                out.add(table, batch)

    def _calendars(self, rows: pa.Table) -> dict[str, Calendar]:
        if self.zones is None:
            return {table: Calendar(length) for table, length in LENGTHS.items()}
        days = numbers(rows["event_time"]) // DAY_US
        first = min(int(days.min()), ordinal(min(self.dates)))
        last = max(int(days.max()), ordinal(max(self.dates)))
        return {LOCAL: Zoned(self.zones, day_of(first - 2), day_of(last + 3))}


@dataclass
class _Pieces:
    """Shares of readings in windows, by sensor, window and unit; an element a share."""

    reading: Array
    """Its place in the readings."""
    window: Array
    apart: Array
    """A number that differs where units of a sensor cannot be converted; mostly 0."""
    begins: Array
    """Where the shares of a row of the table begin."""
    fresh: Array
    """Whether the reading itself was in the window."""
    end: Array
    lasted: Array
    value: Array
    has_value: Array
    risen: Array
    has_risen: Array
    reset: Array
    unit: Array


def by_window(
    rows: Readings, calendar: Calendar, dates: Sequence[date], *, states_only: bool = False
) -> Iterator[pa.RecordBatch]:
    """Yield READINGS of these dates, of the calendar's windows.

    A window without a reading has a row if a value holds in it; with `states_only` only if it is
    a state.
    """
    days = np.unique([ordinal(day) for day in dates])
    states = _states_of(rows)
    first, last = _touched(rows, calendar, dates, states_only=states_only)
    for begin, end in _portions(rows.sensor, last - first + 1):
        pieces = _pieces(rows, calendar, days, first, last, slice(begin, end))
        if len(pieces.reading):
            columns = _summed(rows, pieces, calendar, states)
            yield dated(columns, calendar.date(pieces.window[pieces.begins]), SCHEMA)


def _touched(
    rows: Readings, calendar: Calendar, dates: Sequence[date], *, states_only: bool
) -> tuple[Array, Array]:
    """Return the first and last window that each reading's value touches, or its own alone."""
    own = calendar.of(rows.time, rows.names[0])
    begin = np.maximum(own, calendar.first(ordinal(min(dates))))
    final = calendar.first(ordinal(max(dates) + timedelta(1))) - 1
    last = np.minimum(calendar.of((rows.until - 1) * 1_000, rows.names[0]), final)
    crosses = (last > own) & (last >= begin)
    if states_only:
        crosses &= rows.kind == code(STATE)
    return np.where(crosses, begin, own), np.where(crosses, last, own)


def _portions(sensor: Array, counts: Array) -> Iterator[tuple[int, int]]:
    """Yield ranges of readings, of whole sensors, of PIECES together or of one sensor."""
    ends = np.append(runs(sensor)[1:], len(sensor))
    total = np.cumsum(counts)[ends - 1]
    sensors, begin, before = 0, 0, 0
    while sensors < len(ends):
        place = max(int(np.searchsorted(total, before + PIECES, "right")), sensors + 1)
        end = int(ends[place - 1])
        yield begin, end
        sensors, begin, before = place, end, int(total[place - 1])


def _pieces(
    rows: Readings, calendar: Calendar, days: Array, first: Array, last: Array, part: slice
) -> _Pieces:
    """Return each reading's share of each window that it touches, in the unit of that day."""
    counts = (last - first + 1)[part]
    reading = np.repeat(np.arange(part.start, part.stop), counts)
    behind = np.arange(len(reading)) - np.repeat(np.cumsum(counts) - counts, counts)
    window = first[reading] + behind
    wanted = np.isin(calendar.date(window), days)
    reading, window = reading[wanted], window[wanted]
    of_day = _of_day(rows, reading, calendar.date(window))
    apart, unit = _apart(rows, rows.unit[reading], of_day)
    sensor = rows.sensor[reading]
    later = np.diff(window)
    same_place = (later == 0) & (np.diff(apart) >= 0)
    if not ((np.diff(sensor) > 0) | (later > 0) | same_place).all():
        order = np.lexsort((apart, window, sensor))
        reading, window, apart, unit = (each[order] for each in (reading, window, apart, unit))
    return _shares(rows, calendar, reading, window, apart, unit)


def _of_day(rows: Readings, reading: Array, day: Array) -> Array:
    """Return the unit of a window's day: the reading's own, or that of the one that follows."""
    following = rows.following[reading]
    then = (following >= 0) & (day >= rows.day[following])
    later = np.where(then, rows.of_day[following], -1)
    return np.where(day == rows.day[reading], rows.of_day[reading], later)


def _apart(rows: Readings, unit: Array, of_day: Array) -> tuple[Array, Array]:
    """Return a number for each unit that cannot be converted into the day's, else 0.

    The second is the unit of the figures.
    """
    units = rows.units
    one = (unit < 0) | (of_day < 0) | (unit == of_day) | units.convertible(unit, of_day)
    dimension = units.dimension[unit]
    alone = np.where(dimension >= 0, dimension, len(units.names) + unit)
    here = np.where(one, np.where(of_day >= 0, of_day, unit), units.base(unit))
    return np.where(one, 0, alone + 1), here


def _shares(
    rows: Readings, calendar: Calendar, reading: Array, window: Array, apart: Array, unit: Array
) -> _Pieces:
    gateway = rows.names[0]
    gateway = Coded(gateway.codes[reading], gateway.values)
    start = calendar.start(window, gateway) // 1_000
    ms, kind, of = rows.ms[reading], rows.kind[reading], rows.unit[reading]
    end = np.minimum(rows.until[reading], calendar.start(window + 1, gateway) // 1_000)
    value, counted = rows.value[reading], rows.counted[reading]
    reset = rows.has_counted[reading] & rows.has_value[reading] & (value < counted)
    risen = np.where(reset, value, value - counted)
    has_risen = (kind == code(TOTAL)) & rows.has_counted[reading] & rows.has_value[reading]
    number, possible = rows.units.converted(value, of, unit)
    rise, _ = rows.units.converted(risen, of, unit)
    own_window = calendar.of(rows.time[reading], gateway) == window
    return _Pieces(
        reading, window, apart, runs(rows.sensor[reading], window, apart),
        rows.own[reading] & own_window, end, np.maximum(end - np.maximum(ms, start), 0),
        number, rows.has_value[reading] & possible, rise, has_risen & possible, reset, unit,
    )  # fmt: skip


def _summed(
    rows: Readings, pieces: _Pieces, calendar: Calendar, states: Coded
) -> dict[str, pa.Array]:
    """Return the columns of READINGS but for the date, a row for each run of shares."""
    at, reading = pieces.begins, pieces.reading
    good, kind = rows.good[reading], rows.kind[reading]
    fresh = pieces.fresh & good
    numeric = fresh & pieces.has_value
    some = count(numeric, at)
    number = last_place(good & pieces.has_value, at)
    text = last_place(good & rows.has_text[reading], at)
    last = last_place(good, at)
    of_kind = np.where(last >= 0, kind[last], np.maximum.reduceat(kind, at))
    final = np.append(at[1:], len(reading)) - 1
    lasting = good & (kind == code(SAMPLE)) & pieces.has_value
    weighed = total(pieces.value * pieces.lasted, lasting, at)
    weight = total(pieces.lasted, lasting, at)
    rises = of_kind == code(TOTAL)
    sample = count(lasting, at) > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = total(pieces.value, numeric, at) / some
        weighted = weighed / weight
    gateway = Coded(rows.names[0].codes[reading[at]], rows.names[0].values)
    names = zip(SENSOR, (column.take(reading[at]) for column in rows.names), strict=True)
    return dict(names) | {
        "window_start": moments(calendar.start(pieces.window[at], gateway)),
        "min": doubles(lowest(pieces.value, numeric, at), some > 0),
        "max": doubles(highest(pieces.value, numeric, at), some > 0),
        "mean": doubles(mean, some > 0),
        "last": doubles(pieces.value[number], number >= 0),
        "last_text": rows.text.take(integers(reading[text], text >= 0)),
        "unit": texts(strings(rows.units.names), pieces.unit[final]),
        "count": integers(count(fresh, at)),
        "gaps": integers(count(pieces.fresh & rows.gap[reading], at)),
        "states": _states(pieces, states, good & (kind == code(STATE))),
        "kind": texts(strings(KINDS), of_kind),
        "bad": integers(count(pieces.fresh & ~good, at)),
        "time_weighted_mean": doubles(weighted, weight > 0),
        "integral": doubles(weighed / 3_600_000, sample),
        "increase": doubles(total(pieces.risen, fresh & pieces.has_risen, at), rises),
        "resets": integers(count(fresh & pieces.reset, at), rises),
        "held_ms": integers(np.add.reduceat(pieces.lasted, at)),
        "held_until": moments(highest(pieces.end * 1_000, good, at), last >= 0),
        "last_time": moments(rows.time[reading[last]], last >= 0),
    }


def _states_of(rows: Readings) -> Coded:
    """Return the readings' states, as far as they name them, with OTHERS as the last."""
    named = coded(pa.chunked_array([pc.utf8_slice_codeunits(rows.text, 0, STATE_CHARACTERS)]))
    return Coded(named.codes, pa.concat_arrays([named.values, strings([OTHERS])]))


def _states(pieces: _Pieces, states: Coded, where: Array) -> pa.Array:
    """Return the milliseconds in each state by row, STATES_MAX of them and OTHERS."""
    rows = len(pieces.begins)
    row = spread(np.arange(rows), pieces.begins, len(where))[where]
    state = states.codes[pieces.reading[where]]
    row, state, lasted = _by_state(row, state, pieces.lasted[where])
    if len(row) and np.bincount(row).max() > STATES_MAX:
        order = np.lexsort((state, -lasted, row))
        row, state, lasted = row[order], state[order], lasted[order]
        begins = runs(row)
        rank = np.arange(len(row)) - spread(begins, begins, len(row))
        others = _others(states)
        row, state, lasted = _by_state(row, np.where(rank < STATES_MAX, state, others), lasted)
    lengths = np.bincount(row, minlength=rows)
    return pa.MapArray.from_arrays(
        offsets(lengths, lengths > 0), texts(states.values, state), integers(lasted)
    )


def _others(states: Coded) -> int:
    """Return the code of OTHERS; a state may be called so itself."""
    return int(states.values.to_pylist().index(OTHERS))


def _by_state(row: Array, state: Array, lasted: Array) -> tuple[Array, Array, Array]:
    order = np.lexsort((state, row))
    row, state = row[order], state[order]
    begins = runs(row, state)
    if not len(begins):
        return row, state, lasted
    return row[begins], state[begins], np.add.reduceat(lasted[order], begins)

"""Readings that are not as expected: out of range, stuck, changing too fast, in another unit."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.gold.calendars import DAY_US, dated, ordinal
from pipeline.gold.kinds import BAD, DAY_MS
from pipeline.gold.readings import NEEDED, SENSOR, ordered
from pipeline.gold.tasks import Bucket, Job
from pipeline.gold.units import Units
from pipeline.records.declared import QUARANTINE, Declared
from pipeline.tables import delta
from pipeline.tables.arrays import Array, coded, integers, numbers, runs, spread, strings, valid
from pipeline.tables.columns import KEY, Columns, arrow_schema
from pipeline.tables.delta import Where
from pipeline.tables.task_files import TaskFiles

if TYPE_CHECKING:
    from pipeline.records.declarations import Expectation

TABLE = "unexpected"
UNEXPECTED: Columns = (
    *((name, "bigint" if name == "seq" else "string") for name in KEY),
    ("part", "int"),
    ("event_time", "timestamp"),
    *((name, "string") for name in SENSOR[1:]),
    ("value", "double"),
    ("value_text", "string"),
    ("unit", "string"),
    ("expectation", "string"),
    ("detail", "string"),
    ("action", "string"),
    ("date", "date"),
)
"""A row for each reading and each expectation that it does not meet."""
READING = (*KEY, "part")
"""What names a reading."""
LEFT_OUT = arrow_schema(tuple(column for column in UNEXPECTED if column[0] in READING))
"""Readings that gold leaves out."""
MARKED = (*READING, "action", "date")
"""What is read of UNEXPECTED to find them."""
GAP_MS = DAY_MS
"""A silence so long ends what is known of a sensor: how fast it changes, how long it is stuck."""
DAY = timedelta(days=1)
_SCHEMA = arrow_schema(UNEXPECTED[:-1])


def lookback(expectations: "Iterable[Expectation]") -> int:
    """Return how many days before a day decide about its readings."""
    days = [0]
    for each in expectations:
        if each.rate is not None:
            days.append(1)
        if each.stuck is not None:
            days.append(1 + math.ceil(each.stuck * 1000 / DAY_MS))
    return max(days)


def around(days: Iterable[date], first: int, last: int) -> set[date]:
    """Return days and those from `first` to `last` days after each."""
    return {day + n * DAY for day in days for n in range(first, last + 1)}


@dataclass(frozen=True)
class Unexpected(Job):
    """UNEXPECTED of some dates; it reads the days of `lookback` before them, too."""

    columns = (*NEEDED, "part")
    keys = SENSOR
    expectations: "tuple[Expectation, ...]"
    dates: tuple[date, ...]

    def write(self, rows: pa.Table, bucket: Bucket, out: TaskFiles) -> None:
        """Write the rows of a bucket's sensors."""
        del bucket
        days = np.array([ordinal(day) for day in self.dates])
        for found in unexpected(rows, self.expectations):
            here = np.isin(numbers(found["event_time"]) // DAY_US, days)
            kept = found.take(integers(np.flatnonzero(here))).combine_chunks()
            columns = dict(zip(kept.schema.names, (c.combine_chunks() for c in kept), strict=True))
            day = numbers(kept["event_time"]) // DAY_US
            out.add(TABLE, dated(columns, day, arrow_schema(UNEXPECTED)))


def unexpected(rows: pa.Table, expectations: "Sequence[Expectation]") -> Iterator[pa.Table]:
    """Yield UNEXPECTED, but for the date, of readings with NEEDED and `part`."""
    rows = rows.filter(pc.and_(pc.is_valid(rows["node"]), pc.is_valid(rows["event_time"])))
    if not rows.num_rows:
        return
    order, sensor = ordered(rows, tuple(coded(rows[name]) for name in SENSOR))
    readings = _Readings(rows.take(integers(order)), sensor)
    for each in expectations:
        chosen = readings.of(each)
        for name, places, details in chosen.failing(each) if len(chosen.rows) else ():
            found = chosen.rows.take(integers(places))
            yield _as_rows(found, name, details, each.action)


def with_left_out(rows: pa.Table, left_out: pa.Table) -> pa.Table:
    """Return readings, those of LEFT_OUT with a quality by which gold leaves them out."""
    if not left_out.num_rows:
        return rows
    named = {tuple(row.values()) for row in left_out.to_pylist()}
    places = np.flatnonzero(numbers(pc.is_in(rows["seq"], value_set=left_out["seq"])))
    near = rows.take(integers(places))
    keys = zip(*(near[name].to_pylist() for name in READING), strict=True)
    out = np.zeros(rows.num_rows, bool)
    out[places] = [(*key[:-1], key[-1] or 0) in named for key in keys]
    quality = pc.if_else(pa.array(out), pa.scalar(BAD), rows["quality"])
    return rows.set_column(rows.schema.get_field_index("quality"), "quality", quality)


class _Readings:
    """Readings by sensor and time, with values as numbers."""

    def __init__(self, rows: pa.Table, sensor: Array) -> None:
        self.rows = rows
        self._sensor = sensor

    def of(self, each: "Expectation") -> "_Readings":
        """Return those that an expectation is of, without bad ones and those without a value."""
        rows = self.rows
        kept = numbers(pc.or_(pc.is_valid(rows["value"]), pc.is_valid(rows["value_text"])))
        bad = pc.starts_with(pc.utf8_lower(rows["quality"]), BAD)
        kept &= ~numbers(pc.fill_null(bad, fill_value=False))
        wanted = (each.gateway, each.node, each.quantity, each.instance)
        for name, text in zip(SENSOR, wanted, strict=True):
            if text is not None:
                kept &= numbers(pc.fill_null(pc.equal(rows[name], text), fill_value=False))
        places = np.flatnonzero(kept)
        return _Readings(rows.take(integers(places)), self._sensor[places])

    def failing(self, each: "Expectation") -> Iterator[tuple[str, Array, list[str]]]:
        """Yield what is not met, by which readings, and how."""
        value, possible = self._values(each.unit)
        unit = each.unit or ""
        number = valid(self.rows["value"])
        wrong = number & ~possible
        if each.unit is not None and wrong.any():
            units = self.rows["unit"].take(integers(np.flatnonzero(wrong))).to_pylist()
            details = [f"{name or 'no unit'} instead of {unit}" for name in units]
            yield "unit", np.flatnonzero(wrong), details
        known = number & possible
        out = np.zeros(len(value), bool)
        for limit, words, beyond in (
            (each.minimum, "below", value < (each.minimum or 0)),
            (each.maximum, "above", value > (each.maximum or 0)),
        ):
            if limit is not None:
                places = np.flatnonzero(known & beyond)
                out[places] = True
                yield "range", places, _beyond(value[places], f"{words} {limit:g} {unit}")
        if each.rate is not None:
            yield from self._fast(value, known & ~out, each.rate, unit)
        if each.stuck is not None:
            yield from self._stuck(value, (known | ~number) & ~out, each.stuck)

    def _values(self, unit: str | None) -> tuple[Array, Array]:
        """Return values in a unit, and which could be converted; without one as they are."""
        value = numbers(self.rows["value"])
        if unit is None:
            return value, np.ones(len(value), bool)
        own = coded(self.rows["unit"])
        units = Units([*own.values.to_pylist(), unit])
        into = np.full(len(value), units.names.index(unit))
        found, possible = units.converted(value, own.codes, into)
        return found, possible & (own.codes >= 0)

    def _fast(
        self, value: Array, known: Array, rate: float, unit: str
    ) -> Iterator[tuple[str, Array, list[str]]]:
        """Yield readings that changed by more than `rate` a minute since the one before."""
        places = np.flatnonzero(known)
        ms = numbers(self.rows["event_time"])[places] // 1_000
        same = np.diff(self._sensor[places]) == 0
        lasted = np.diff(ms)
        changed = np.abs(np.diff(value[places]))
        fast = same & (lasted <= GAP_MS) & (changed * 60_000 > rate * lasted)
        details = [
            f"by {by:g} {unit}".rstrip() + f" in {of / 1000:g} s"
            for by, of in zip(changed[fast], lasted[fast], strict=True)
        ]
        yield "rate", places[1:][fast], details

    def _stuck(
        self, value: Array, known: Array, seconds: float
    ) -> Iterator[tuple[str, Array, list[str]]]:
        """Yield readings with the value that all have had for so long."""
        places = np.flatnonzero(known)
        if not len(places):
            return
        ms = numbers(self.rows["event_time"])[places] // 1_000
        silent = np.cumsum(np.diff(ms, prepend=ms[0]) > GAP_MS)
        text = coded(self.rows["value_text"]).codes[places]
        begins = runs(self._sensor[places], value[places], text, silent)
        lasted = ms - spread(ms[begins], begins, len(ms))
        long = lasted >= seconds * 1000
        details = [f"the same for {of / 1000:g} s" for of in lasted[long]]
        yield "stuck", places[long], details


def _beyond(values: Array, words: str) -> list[str]:
    return [f"{value:g} is {words}".rstrip() for value in values]


def _as_rows(found: pa.Table, name: str, details: list[str], action: str) -> pa.Table:
    count = found.num_rows
    made = {
        "expectation": strings([name] * count),
        "detail": strings(details),
        "action": strings([action] * count),
        "part": pc.fill_null(found["part"], fill_value=0),
    }
    columns = [made[name] if name in made else found[name] for name in _SCHEMA.names]
    return pa.Table.from_arrays(columns, schema=_SCHEMA)


def left_out_of(found: pa.Table) -> pa.Table:
    """Return LEFT_OUT of UNEXPECTED."""
    return found.filter(pc.equal(found["action"], QUARANTINE)).select(LEFT_OUT.names)


def changed(root: Where, declared: Declared) -> bool:
    """Say whether gold was made with other expectations, or other kinds of quantities."""
    return (delta.opened(root / TABLE).metadata().description or "") != _words(declared)


def note(root: Where, declared: Declared) -> None:
    """Note with what gold is made."""
    if changed(root, declared):
        delta.describe(root / TABLE, _words(declared))


def _words(declared: Declared) -> str:
    if not declared.expectation and not declared.kinds:
        return ""
    return repr([[asdict(each) for each in declared.expectation], list(declared.kinds)])

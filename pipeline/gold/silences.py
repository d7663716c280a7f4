"""Silences of sensors that are longer than usual, and why: a rule, missing numbers, or neither."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.gold.calendars import DAY_US, dated, ordinal
from pipeline.gold.readings import SENSOR, Readings
from pipeline.place import Place
from pipeline.policy import Aliases
from pipeline.tables import delta
from pipeline.tables.arrays import Array, integers, moments, runs, strings, texts
from pipeline.tables.columns import GAPS, Columns, arrow_schema
from pipeline.tables.task_files import NewFile, Written

if TYPE_CHECKING:
    from pipeline.records.declarations import Expectation

TABLE = "silences"
SILENCES: Columns = (
    *((name, "string") for name in SENSOR),
    ("begins", "timestamp"),
    ("ends", "timestamp"),
    ("usual_ms", "bigint"),
    ("cause", "string"),
    ("date", "date"),
)
"""A row for each silence between two readings of a sensor in a day that is a gap; `usual_ms` is the
sensor's median interval of that day."""
_SCHEMA = arrow_schema(SILENCES)

CAUSES = ("silent", "rule", "missing")
SILENT, RULE, MISSING = range(len(CAUSES))
"""Each number of the gateway in that time arrived; a rule left some out and the others arrived;
some did not arrive for another reason."""
BY_RULE = "filtered"

Numbered = tuple[str, str, str]
"""Gateway, under its name of now, epoch and stream."""
_GAPS = ("gateway", "epoch", "stream", "first", "last", "outcome")


@dataclass
class _Numbers:
    """Ranges of numbers of a stream that did not arrive, in order and apart."""

    firsts: list[int] = field(default_factory=list)
    lasts: list[int] = field(default_factory=list)
    otherwise: list[bool] = field(default_factory=list)
    """Whether another reason than a rule left them out."""

    def __post_init__(self) -> None:
        self._sums = list(accumulate(self.otherwise, initial=0))

    def cause(self, after: int, before: int) -> int:
        """Return why a sensor was silent between two numbers."""
        begin, end = bisect_right(self.lasts, after), bisect_left(self.firsts, before)
        if begin >= end:
            return SILENT
        return MISSING if self._sums[end] > self._sums[begin] else RULE


_NONE = _Numbers()
ROWS_READ = 100_000
"""Rows of gaps that a task has in memory at one time before it knows which it needs."""
_ENDLESS = 2**63 - 1


@dataclass(frozen=True)
class Lacking:
    """Rows of the table `gaps` in a file, of which a task reads what it needs."""

    root: Place
    file: Written
    aliases: Aliases

    def causes(self, readings: Readings, places: Array) -> list[int]:
        """Return why a sensor was silent before each of these readings."""
        if not len(places):
            return []
        pairs = list(zip(_named(readings, places - 1), _named(readings, places), strict=True))
        spans: dict[Numbered, tuple[int, int]] = {}
        for key, low, high in (span for pair in pairs for span in _spans(*pair)):
            known = spans.get(key, (low, high))
            spans[key] = min(low, known[0]), max(high, known[1])
        numbers = self._numbers(spans)
        return [
            max(numbers.get(key, _NONE).cause(low, high) for key, low, high in _spans(*pair))
            for pair in pairs
        ]

    def _numbers(self, spans: Mapping[Numbered, tuple[int, int]]) -> Mapping[Numbered, _Numbers]:
        """Return what did not arrive of some streams between two numbers of each."""
        epochs = strings(sorted({key[1] for key in spans}))
        with delta.parquet(self.root / self.file.folder, self.file.name) as source:
            parts = [
                pa.Table.from_batches([part.filter(pc.is_in(part["epoch"], value_set=epochs))])
                for part in source.iter_batches(ROWS_READ, use_threads=False)
            ]
            table = pa.concat_tables([_no_gaps(), *parts])
        found: dict[Numbered, list[tuple[int, int, bool]]] = {}
        for row in _near(table, spans).sort_by("first").to_pylist():
            gateway = self.aliases.of(row["gateway"], None)[0]
            of = found.setdefault((gateway, row["epoch"], row["stream"]), [])
            of.append((row["first"], row["last"], row["outcome"] != BY_RULE))
        return {key: _Numbers(*map(list, zip(*rows, strict=True))) for key, rows in found.items()}


def write_near(root: Place, first: date, last: date) -> Written:
    """Write the gaps that may lie between two readings of these dates, a row of _GAPS each.

    No table has the file; `vacuum` removes what a kill leaves.
    """
    begin, end = _midnight(first), _midnight(last + timedelta(1))
    file = NewFile(root, f"{TABLE}/gaps", _no_gaps().schema)
    for part in delta.scan(root / "gaps", [*_GAPS, "after", "before"]):
        before = pc.coalesce(part["before"], part["after"])
        after = pc.coalesce(part["after"], part["before"])
        near = pc.and_(pc.greater_equal(before, begin), pc.less(after, end))
        file.write(delta.typed(pa.Table.from_batches([part.filter(near)]), _no_gaps().schema))
    return file.close()


def _midnight(day: date) -> pa.Scalar:
    moment = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return pa.scalar(moment, pa.timestamp("us", tz="UTC"))


def _no_gaps() -> pa.Table:
    schema = arrow_schema(GAPS)
    return pa.Table.from_batches([], pa.schema([schema.field(name) for name in _GAPS]))


def _near(gaps: pa.Table, spans: Mapping[Numbered, tuple[int, int]]) -> pa.Table:
    """Return the gaps between the numbers of their epochs: an epoch may have lasted a year."""
    epochs = sorted({key[1] for key in spans})
    place = pc.index_in(gaps["epoch"], value_set=strings(epochs))
    of = [[span for key, span in spans.items() if key[1] == epoch] for epoch in epochs]
    low, high = (
        integers(np.array([choose(span[end] for span in each) for each in of], np.int64))
        for end, choose in enumerate((min, max))
    )
    after, before = (
        pc.greater(gaps["last"], low.take(place)),
        pc.less(gaps["first"], high.take(place)),
    )
    return gaps.filter(pc.and_(after, before))


def _named(readings: Readings, places: Array) -> list[tuple[Numbered, int]]:
    rows = readings.numbered.take(integers(places)).to_pylist()
    return [((row["gateway_id"], row["epoch"], row["stream"]), row["seq"]) for row in rows]


def _spans(
    before: tuple[Numbered, int], after: tuple[Numbered, int]
) -> list[tuple[Numbered, int, int]]:
    """Return the numbers between two readings, perhaps of two starts."""
    (one, first), (other, last) = before, after
    if one == other:  # a payload's own time may put them in another order than their numbers
        return [(one, min(first, last), max(first, last))]
    return [(one, first, _ENDLESS), (other, 0, last)]


def explained(
    readings: Readings,
    lacking: Lacking,
    dates: Iterable[date],
    expectations: "Iterable[Expectation]" = (),
) -> pa.RecordBatch:
    """Return SILENCES of some dates; those by a rule are taken from the readings' gaps.

    Sensors of which there is to be a reading `every` so often have a gap where there is none.
    """
    strict = _expected(readings, expectations)
    places = np.flatnonzero(readings.gap)
    causes = np.array(lacking.causes(readings, places), np.int64)
    causes[strict[places] & (causes == RULE)] = SILENT
    readings.gap[places[causes == RULE]] = False
    wanted = np.isin(readings.time[places] // DAY_US, [ordinal(day) for day in dates])
    return _rows(readings, places[wanted], causes[wanted])


def _expected(readings: Readings, expectations: "Iterable[Expectation]") -> Array:
    """Find the gaps of sensors with an expectation by it; return which readings are theirs."""
    theirs = np.zeros(len(readings.ms), bool)
    silence = np.diff(readings.ms, prepend=0)
    silence[runs(readings.sensor, readings.day)] = 0
    for each in expectations:
        if each.every is None:
            continue
        chosen = np.ones(len(readings.ms), bool)
        wanted = (each.gateway, each.node, each.quantity, each.instance)
        for names, text in zip(readings.names, wanted, strict=True):
            if text is not None:
                place = pc.index(names.values, text).as_py()
                chosen &= (names.codes == place) & (place >= 0)  # -1 is the code of no instance
        chosen &= readings.own
        readings.gap[chosen] = silence[chosen] > each.every * 1000
        theirs |= chosen
    return theirs


def _rows(readings: Readings, places: Array, causes: Array) -> pa.RecordBatch:
    names = zip(SENSOR, (column.take(places) for column in readings.names), strict=True)
    columns = dict(names) | {
        "begins": moments(readings.time[places - 1]),
        "ends": moments(readings.time[places]),
        "usual_ms": integers(readings.usual_ms[places]),
        "cause": texts(strings(CAUSES), causes),
    }
    return dated(columns, readings.time[places] // DAY_US, _SCHEMA)

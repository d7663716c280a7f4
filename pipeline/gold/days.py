"""What each gateway and each node did in a day."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.gold.calendars import dated, day_of, ordinal
from pipeline.gold.tasks import Bucket, Job
from pipeline.tables.arrays import (
    Array,
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
    valid,
)
from pipeline.tables.columns import Columns, arrow_schema
from pipeline.tables.task_files import TaskFiles

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

NEEDED = (
    *("gateway_id", "node", "quantity", "event_date", "event_time", "epoch", "seq", "received"),
    *("value", "lateness_ms", "resent", "bytes", "decode_error", "part"),
)
"""The columns of silver that these tables are made from."""

_GATEWAYS = arrow_schema(GATEWAY_DAY)
_NODES = arrow_schema(NODE_DAY)

Quarantined = Mapping[tuple[str, date], Mapping[str, int]]
"""Rows of the quarantine by gateway and date, counted by reason."""
Rows = Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class Days(Job):
    """GATEWAY_DAY and NODE_DAY of some dates."""

    columns = NEEDED
    keys = ("gateway_id",)
    quarantined: Quarantined

    def write(self, rows: pa.Table, bucket: Bucket, out: TaskFiles) -> None:
        """Write the rows of a bucket's gateways."""
        keys = list(self.quarantined)
        gateways = pa.chunked_array([strings([gateway for gateway, _ in keys])])
        own = {keys[place]: self.quarantined[keys[place]] for place in bucket.of(gateways)}
        timed = rows.filter(pc.is_valid(rows["event_time"]))
        messages = timed.take(integers(np.flatnonzero(numbers(timed["part"]) == 0)))
        tables = {"gateway_day": gateway_day(messages, own), "node_day": node_day(timed)}
        for table, found in tables.items():
            for batch in found:
                out.add(table, batch)


class _Groups:
    """Rows sorted by the groups of some columns, by date and by their times."""

    def __init__(self, rows: pa.Table, *keys: str) -> None:
        names = [coded(rows[key]) for key in keys]
        day = numbers(rows["event_date"]).astype(np.int64)
        time = numbers(rows["event_time"])
        order = np.lexsort((numbers(rows["seq"]), time, day, *(each.codes for each in names[::-1])))
        self.rows = rows.take(integers(order))
        self.time, day = time[order], day[order]
        self.begins = runs(*(each.codes[order] for each in names), day)
        self.names = [each.take(order[self.begins]) for each in names]
        self.day = day[self.begins]
        self.count = np.diff(np.append(self.begins, len(order)))

    def spread(self, of_group: Array) -> Array:
        return spread(of_group, self.begins, len(self.time))

    def sum(self, column: str) -> pa.Array:
        """Return the sums of a column of integers, 0 for no value."""
        return integers(np.add.reduceat(numbers(self.rows[column]), self.begins))

    def highest(self, column: str, scale: int = 1) -> tuple[Array, Array]:
        """Return the highest of integers, times `scale`, and for which groups there is one."""
        there = valid(self.rows[column])
        found = highest(numbers(self.rows[column]) * scale, there, self.begins)
        return found, count(there, self.begins) > 0

    def distinct(self, column: str, where: Array | None = None) -> Array:
        """Return how many values a column has, not counting null."""
        codes, values = coded(self.rows[column])
        there = codes >= 0 if where is None else (codes >= 0) & where
        group = self.spread(np.arange(len(self.begins)))[there]
        pairs = np.unique(group * (len(values) + 1) + codes[there])
        return np.bincount(pairs // (len(values) + 1), minlength=len(self.begins))

    def percentile_99(self, column: str) -> pa.Array:
        """Return the value that 99 % of those which are there do not pass."""
        values, there = numbers(self.rows[column]), valid(self.rows[column])
        group = self.spread(np.arange(len(self.begins)))[there]
        ordered = values[there][np.lexsort((values[there], group))]
        counts = np.bincount(group, minlength=len(self.begins))
        some = counts > 0
        places = np.cumsum(counts) - counts + np.ceil(0.99 * counts).astype(np.int64) - 1
        found = np.zeros(len(counts), np.int64)
        found[some] = ordered[places[some]]
        return integers(found, some)

    def silence(self) -> pa.Array:
        """Return the longest time in ms between two rows, null for a single row."""
        between = np.diff(self.time // 1_000, prepend=0)
        between[self.begins] = 0
        return integers(np.maximum.reduceat(between, self.begins), self.count > 1)

    def last_time(self) -> pa.Array:
        """Return the newest event.

        A sensor whose clock is ahead must not look fresh for ever: no event is after its receipt.
        """
        received, there = numbers(self.rows["received"]) * 1_000, valid(self.rows["received"])
        time = np.where(there, np.minimum(self.time, received), self.time)
        return moments(np.maximum.reduceat(time, self.begins))

    def resent(self) -> Array:
        return count(numbers(self.rows["resent"]), self.begins)


def gateway_day(silver: pa.Table, quarantined: Quarantined) -> Rows:
    """Yield GATEWAY_DAY."""
    if not silver.num_rows:
        yield from _quarantined_alone(quarantined)
        return
    groups = _Groups(silver, "gateway_id")
    late, there = numbers(groups.rows["lateness_ms"]), valid(groups.rows["lateness_ms"])
    first = numbers(groups.rows["seq"]) == 1
    days = [day_of(each) for each in groups.day.tolist()]
    names = groups.names[0].to_pylist()
    of_groups = list(zip(names, days, strict=True))
    known = [quarantined.get(key, {}) for key in of_groups]
    columns = {
        "gateway_id": groups.names[0],
        "rows": integers(groups.count),
        "bytes": groups.sum("bytes"),
        "quarantined": _maps(known),
        "late_rows": integers(count(there & (late > LATE_MS), groups.begins)),
        "lateness_p99_ms": groups.percentile_99("lateness_ms"),
        "lateness_max_ms": integers(*groups.highest("lateness_ms")),
        "resent_rows": integers(groups.resent()),
        "resent_share": doubles(groups.resent() / groups.count),
        "longest_silence_ms": groups.silence(),
        "restarts": integers(groups.distinct("epoch", first)),
        "last_time": groups.last_time(),
        "last_received": moments(*groups.highest("received", 1_000)),
    }
    yield dated(columns, groups.day, _GATEWAYS)
    rest = [key for key in quarantined if key not in set(of_groups)]
    yield from _quarantined_alone({key: quarantined[key] for key in rest})


def _quarantined_alone(quarantined: Quarantined) -> Rows:
    """Yield the rows of gateways and dates of which there is nothing but the quarantine."""
    count = len(quarantined)
    if not count:
        return
    made = dict.fromkeys(COUNTED, integers(np.zeros(count)))
    made["gateway_id"] = strings([gateway for gateway, _ in quarantined])
    made["quarantined"] = _maps(list(quarantined.values()))
    columns = {field.name: made.get(field.name, pa.nulls(count, field.type)) for field in _GATEWAYS}
    yield dated(columns, np.array([ordinal(day) for _, day in quarantined]), _GATEWAYS)


def _maps(counts: Sequence[Mapping[str, int]]) -> pa.Array:
    """Return a column of maps, null for an empty one."""
    lengths = np.array([len(each) for each in counts])
    keys = strings([reason for each in counts for reason in each])
    values = integers(np.array([number for each in counts for number in each.values()]))
    return pa.MapArray.from_arrays(offsets(lengths, lengths > 0), keys, values)


def node_day(silver: pa.Table) -> Rows:
    """Yield NODE_DAY."""
    of_nodes = silver.filter(pc.is_valid(silver["node"]))
    if not of_nodes.num_rows:
        return
    groups = _Groups(of_nodes, "gateway_id", "node")
    rows = groups.rows
    named = pc.starts_with(pc.utf8_lower(rows["quantity"]), "battery")
    battery = numbers(named) & valid(rows["value"])
    value = numbers(rows["value"])
    last = last_place(battery, groups.begins)
    columns = {
        "gateway_id": groups.names[0],
        "node": groups.names[1],
        "rows": integers(groups.count),
        "quantities": integers(groups.distinct("quantity")),
        "errors": integers(count(valid(rows["decode_error"]), groups.begins)),
        "lateness_p99_ms": groups.percentile_99("lateness_ms"),
        "resent_share": doubles(groups.resent() / groups.count),
        "longest_silence_ms": groups.silence(),
        "battery": doubles(value[last], last >= 0),
        "battery_min": doubles(lowest(value, battery, groups.begins), last >= 0),
        "last_time": groups.last_time(),
    }
    yield dated(columns, groups.day, _NODES)

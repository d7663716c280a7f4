"""Two boards under one gateway's name: their ledgers fork, and their epochs run at one time.

A card image that runs twice gives two starts of one number, each with an epoch of its own. So does
a board that is restored from a backup, but then one epoch has ended before the other begins.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import combinations
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.ledger.files import reporter_of
from pipeline.ledger.make import AT_ONCE, sources
from pipeline.policy import SWITCHES, TIME_MAX, TIME_MIN, TOLERANCE_MS
from pipeline.tables import delta, silver_numbers
from pipeline.tables.arrays import coded, runs
from pipeline.tables.columns import BOARDS, arrow_schema
from pipeline.tables.delta import Where
from pipeline.tables.silver_numbers import portions

FORK = "fork"
"""Two epochs are the same start of the gateway, or follow the same epoch, by their ledgers."""
INTERLEAVED = "interleaved"
"""Messages of two epochs alternate, both by their times and as they were received."""
READ = ("epoch", "event_time", "received", "time_source", "resent")
"""The columns of silver that decide."""
EPOCHS_MAX = 1_000
"""Epochs of a gateway that are compared, the newest: each with all that overlap it."""
_TIMED = ("gateway", "clock", "reading")

Span = tuple[int, int]
Spans = dict[str, Span]
"""The first and last event time (ms) of each epoch of a gateway."""


class Boards(NamedTuple):
    """Two epochs of one gateway that ran at the same time, and when (ms)."""

    gateway: str
    epoch: str
    other_epoch: str
    reason: str
    first_ms: int
    last_ms: int


def make(root: Where, gateways: set[str] | None) -> None:
    """Make the table `boards` anew for these gateways, for all if None."""
    table = root / "boards"
    found = list(boards(root, gateways))
    old = delta.read_all(table)
    if not found and not old.num_rows:
        return
    rows = [
        {"gateway": each.gateway, "epoch": each.epoch, "other_epoch": each.other_epoch}
        | {"reason": each.reason, "first_time": _time(each.first_ms)}
        | {"last_time": _time(each.last_ms)}
        for each in found
    ]
    stay = [
        row for row in old.to_pylist() if gateways is not None and row["gateway"] not in gateways
    ]
    delta.overwrite(table, pa.Table.from_pylist(stay + rows, arrow_schema(BOARDS)))


def boards(root: Where, gateways: set[str] | None) -> Iterator[Boards]:
    """Yield the pairs of epochs that ran at one time, of these gateways, of all if None."""
    for portion in portions(sources(root), gateways, AT_ONCE):
        yield from _boards(root, portion)


def _boards(root: Where, gateways: Sequence[str]) -> Iterator[Boards]:
    forks = _forks(root, gateways)
    for gateway, spans in sorted(_spans(silver_numbers.of_gateways(root, gateways)).items()):
        for one, two in map(sorted, _overlapping(spans)):
            pair = (one, two)
            reason = FORK if frozenset(pair) in forks.get(gateway, ()) else INTERLEAVED
            near = (pc.field("gateway_id") == gateway) & pc.field("epoch").isin(pair)
            rows = delta.read(root / "silver", READ, near)
            if reason == FORK:
                found = _forked(rows)
            else:
                found = _alternating(_timed(rows), "event_time", "received")
            if found is not None:
                yield Boards(gateway, one, two, reason, *found)


def _forked(rows: pa.Table) -> Span | None:
    """Return when two epochs that are one start ran both, None if nothing proves it.

    Times that clocks gave prove it, or else live messages that alternate: what waited in an outbox
    is received late, and a broker passes on in order what it got.
    """
    timed = _common(_timed(rows), "event_time")
    if timed is not None:
        return timed
    live = rows.filter(pc.fill_null(pc.invert(rows["resent"]), fill_value=True))
    live = live.filter(_between(live["received"], (TIME_MIN, TIME_MAX)))
    return _alternating(live, "received")


def _alternating(rows: pa.Table, *columns: str) -> Span | None:
    """Return the time by the first column at which two epochs alternate, by each of them."""
    span = _common(rows, columns[0])
    if span is None:
        return None
    rows = rows.filter(_between(rows[columns[0]], span))
    orders = (coded(rows.sort_by(column)["epoch"]).codes for column in columns)
    return span if all(len(runs(order)) > SWITCHES for order in orders) else None


def _spans(parts: Iterable[pa.Table]) -> dict[str, Spans]:
    """Return the spans of islands' epochs by gateway."""
    found: dict[str, Spans] = {}
    for part in parts:
        timed = part.filter(
            pc.and_(pc.is_valid(part["first_time"]), pc.is_valid(part["last_time"]))
        )
        ends = timed.group_by(["gateway_id", "epoch"]).aggregate(
            [("first_time", "min"), ("last_time", "max")]
        )
        for row in ends.to_pylist():
            spans = found.setdefault(row["gateway_id"], {})
            low, high = row["first_time_min"], row["last_time_max"]
            known = spans.get(row["epoch"], (low, high))
            spans[row["epoch"]] = min(low, known[0]), max(high, known[1])
    return found


def _overlapping(spans: Spans) -> Iterator[tuple[str, str]]:
    """Yield the pairs of epochs that share more time than clocks may differ."""
    newest = sorted(spans, key=lambda epoch: spans[epoch])[-EPOCHS_MAX:]
    running: list[str] = []
    for epoch in newest:
        begin, end = spans[epoch]
        running = [each for each in running if spans[each][1] - begin > TOLERANCE_MS]
        if end - begin > TOLERANCE_MS:
            yield from ((each, epoch) for each in running)
            running.append(epoch)


def _forks(root: Where, gateways: Sequence[str]) -> dict[str, set[frozenset[str]]]:
    """Return the pairs of epochs that are one start, or follow one epoch, by gateway."""
    columns = ["gateway_id", "epoch", "start", "outcome", "last", "reporter", "landing_file"]
    rows = delta.read_parts(root / "ledger", columns, "gateway_id", gateways)
    branches: dict[tuple[str, int | str], set[str]] = {}
    for row in rows.to_pylist():
        if row["start"] is not None:
            branches.setdefault((row["gateway_id"], row["start"]), set()).add(row["epoch"])
        elif row["outcome"] is None and row["last"] is not None:
            epoch = row["reporter"] or reporter_of(row["landing_file"])
            if epoch is not None:
                branches.setdefault((row["gateway_id"], row["epoch"]), set()).add(epoch)
    found: dict[str, set[frozenset[str]]] = {}
    for (gateway, _), epochs in branches.items():
        pairs = combinations(sorted(epochs)[:EPOCHS_MAX], 2)
        found.setdefault(gateway, set()).update(map(frozenset, pairs))
    return found


def _timed(rows: pa.Table) -> pa.Table:
    """Return the rows whose event time is not that of their receipt, with that time in ms."""
    # Not a filter of the table: of columns whose statistics the log lacks it would find nothing.
    rows = rows.filter(pc.is_in(rows["time_source"], value_set=pa.array(_TIMED)))
    ms = pc.divide(rows["event_time"].cast(pa.int64()), 1000)
    return rows.set_column(rows.column_names.index("event_time"), "event_time", ms)


def _common(rows: pa.Table, column: str) -> Span | None:
    """Return the time that two epochs share, None if it is not longer than clocks may differ."""
    ends = rows.group_by("epoch").aggregate([(column, "min"), (column, "max")])
    if ends.num_rows < 2:
        return None
    first, last = pc.max(ends[f"{column}_min"]).as_py(), pc.min(ends[f"{column}_max"]).as_py()
    return (first, last) if last - first > TOLERANCE_MS else None


def _between(times: pa.ChunkedArray, span: Span) -> pa.ChunkedArray:
    return pc.and_(pc.greater_equal(times, span[0]), pc.less_equal(times, span[1]))


def _time(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)

"""Islands: the closed ranges of numbers that are there, for each gateway, epoch and stream."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.tables.arrays import Array, coded, runs
from pipeline.tables.arrays import numbers as integers_of
from pipeline.tables.columns import ISLANDS, arrow_schema

STREAM = ("gateway_id", "epoch", "stream")
SCHEMA = arrow_schema(ISLANDS)
AT_ONCE = 65_536
"""Islands that are Python's objects at one time: a row as a dictionary takes half a kilobyte."""


class Island(NamedTuple):
    """A row of columns.ISLANDS."""

    gateway_id: str
    epoch: str
    stream: str
    first: int
    last: int
    first_time: int | None
    last_time: int | None


def table_of(islands: Sequence[Island]) -> pa.Table:
    """Return islands as a table; `each` is the way back."""
    columns = list(zip(*islands, strict=True)) or [()] * len(SCHEMA)
    return pa.Table.from_arrays(
        [pa.array(column, kind) for column, kind in zip(columns, SCHEMA.types, strict=True)],
        schema=SCHEMA,
    )


def islands_of(rows: pa.Table) -> pa.Table:
    """Return the islands of rows with STREAM, `seq` and `event_ms`; a number may come twice."""
    spans = rows.select([*STREAM, "seq", "seq", "event_ms", "event_ms"])
    return merged(spans.rename_columns(SCHEMA.names).cast(SCHEMA))


def merged(islands: pa.Table) -> pa.Table:
    """Return islands that touch or overlap as one, in the order of stream and number."""
    if not islands.num_rows:
        return SCHEMA.empty_table()
    ordered = islands.combine_chunks()
    group = _groups(ordered)
    first, last = (ordered[name].to_numpy() for name in ("first", "last"))
    order = np.lexsort((last, first, group))
    group, first, last = group[order], first[order], last[order]
    begins = _begins(group, first, last)
    starts = np.flatnonzero(begins)
    reached = np.maximum.reduceat(last, starts)
    ends = _rows_of_ends(last, starts)
    taken = ordered.take(pa.array(order[starts]))
    at_end = ordered.take(pa.array(order[ends]))
    columns = [taken[name] for name in (*STREAM, "first")]
    columns += [pa.array(reached), taken["first_time"], at_end["last_time"]]
    return pa.table(columns, schema=SCHEMA)


def streams_of(rows: pa.Table) -> set[tuple[str, str, str]]:
    """Return the streams of rows."""
    distinct = rows.group_by(list(STREAM), use_threads=False).aggregate([])
    return set(zip(*(distinct[name].to_pylist() for name in STREAM), strict=True))


def epochs_of(rows: pa.Table) -> set[tuple[str, str]]:
    """Return the gateways' epochs of rows."""
    return {(gateway, epoch) for gateway, epoch, _ in streams_of(rows)}


def numbers(islands: pa.Table) -> int:
    """Return how many numbers disjoint islands hold."""
    if not islands.num_rows:
        return 0
    return int((islands["last"].to_numpy() - islands["first"].to_numpy() + 1).sum())


def of_epochs(islands: pa.Table, epochs: pa.Array) -> pa.Table:
    """Return the islands of these epochs."""
    return islands.filter(pc.is_in(islands["epoch"], value_set=epochs))


def overlapping(known: pa.Table, new: pa.Table) -> pa.Table:
    """Return those of disjoint islands in whose epoch one shares a number with known ones."""
    both = pa.concat_tables([of_epochs(known, pc.unique(new["epoch"])), new])
    apart, together = _numbers_by_epoch(both), _numbers_by_epoch(merged(both))
    again = [epoch for epoch, count in together.items() if count != apart[epoch]]
    return of_epochs(new, pa.array(again, pa.string()))


def _numbers_by_epoch(islands: pa.Table) -> dict[str, int]:
    """Return how many numbers each epoch's islands hold, those that overlap more than once."""
    counts = pc.add(pc.subtract(islands["last"], islands["first"]), 1)
    named = pa.table({"epoch": islands["epoch"], "count": counts})
    summed = named.group_by("epoch", use_threads=False).aggregate([("count", "sum")])
    return dict(zip(summed["epoch"].to_pylist(), summed["count_sum"].to_pylist(), strict=True))


def holders(rows: pa.Table, spans: Sequence[tuple[Any, ...]]) -> Array:
    """Return the place of that span which holds each row's number, -1 for none.

    A span begins with STREAM, its first and its last number; those of a stream do not overlap.
    """
    found = np.full(rows.num_rows, -1)
    if not spans:
        return found
    of_stream: defaultdict[tuple[str, ...], list[tuple[int, int, int]]] = defaultdict(list)
    for place, span in enumerate(spans):
        of_stream[span[:3]].append((span[3], span[4], place))
    keys, seq = [coded(rows[name]) for name in STREAM], integers_of(rows["seq"])
    order = np.lexsort([key.codes for key in keys])
    for here in np.split(order, runs(*(key.codes[order] for key in keys))[1:]):
        stream = tuple(key.values[key.codes[here[0]]].as_py() for key in keys) if len(here) else ()
        if stream in of_stream:
            first, last, place = np.array(sorted(of_stream[stream]), np.int64).T
            near = np.searchsorted(first, seq[here], side="right") - 1
            inside = (near >= 0) & (seq[here] <= last[near])
            found[here] = np.where(inside, place[near], -1)
    return found


def each(islands: pa.Table) -> Iterator[Island]:
    """Yield the islands one by one."""
    for part in islands.to_batches(max_chunksize=AT_ONCE):
        for row in part.to_pylist():
            yield Island(**row)


def _groups(table: pa.Table) -> np.ndarray:
    """Return a number for each row that is the same for the rows of a stream, in their order."""
    group = np.zeros(table.num_rows, np.int64)
    for name in STREAM:
        coded = pc.rank(table[name].combine_chunks(), tiebreaker="dense").to_numpy()
        group = group * (int(coded.max()) + 1) + coded
    return group


def _begins(group: np.ndarray, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Mark the rows at which an island begins."""
    begins = np.ones(len(group), bool)
    same = group[1:] == group[:-1]
    # A running maximum within each group: lift each group above the one before it by its rank.
    lifted = _running_maximum(group, last)
    begins[1:] = ~same | (first[1:] - 1 > lifted[:-1])
    return begins


def _running_maximum(group: np.ndarray, last: np.ndarray) -> np.ndarray:
    place = np.argsort(last, kind="stable")
    rank = np.empty(len(last), np.int64)
    rank[place] = np.arange(len(last))
    distinct = np.cumsum(np.concatenate(([0], group[1:] != group[:-1])))
    running = np.maximum.accumulate(distinct * len(last) + rank) - distinct * len(last)
    return np.asarray(last[place][running])


def _rows_of_ends(last: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Return for each island the row that reaches farthest."""
    lengths = np.diff(np.concatenate((starts, [len(last)])))
    island = np.repeat(np.arange(len(starts)), lengths)
    order = np.lexsort((last, island))
    return np.asarray(order[starts + lengths - 1])

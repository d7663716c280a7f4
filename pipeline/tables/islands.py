"""Islands: the closed ranges of numbers that are there, for each gateway, epoch and stream."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.tables.arrays import Array, coded, integers, strings
from pipeline.tables.arrays import numbers as integers_of
from pipeline.tables.columns import ISLANDS, arrow_schema

STREAM = ("gateway_id", "epoch", "stream")
SCHEMA = arrow_schema(ISLANDS)
_NAMES = pa.schema([SCHEMA.field(name) for name in STREAM])
AT_ONCE = 65_536
"""Islands that are Python's objects at one time: a row takes half a kilobyte."""


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
    return merged(spans_of(rows))


def spans_of(rows: pa.Table) -> pa.Table:
    """Return a range of one number for each of such rows."""
    spans = rows.select([*STREAM, "seq", "seq", "event_ms", "event_ms"])
    return spans.rename_columns(SCHEMA.names).cast(SCHEMA)


def merged(spans: pa.Table) -> pa.Table:
    """Return ranges that touch or overlap as one, in the order of stream and number."""
    if not spans.num_rows:
        return _none()
    whole, order, group, first, last = _ordered(spans)
    starts = np.flatnonzero(_begins(group, first, last))
    reached = np.maximum.reduceat(last, starts)
    ends = _rows_of_ends(last, starts)
    taken = whole.take(integers(order[starts]))
    at_end = whole["last_time"].take(integers(order[ends]))
    columns = [taken[name] for name in (*STREAM, "first")]
    columns += [integers(reached), taken["first_time"], at_end]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def twice(spans: pa.Table) -> pa.Table:
    """Return the numbers that more than one of the ranges holds, as islands without times."""
    if not spans.num_rows:
        return _none()
    whole, order, group, first, last = _ordered(spans)
    reached = _running_maximum(group, last)
    again = np.flatnonzero((group[1:] == group[:-1]) & (first[1:] <= reached[:-1])) + 1
    taken = whole.take(integers(order[again]))
    columns = [taken[name] for name in (*STREAM, "first")]
    columns += [integers(np.minimum(last[again], reached[again - 1]))]
    columns += [pa.nulls(len(again), pa.int64())] * 2
    return merged(pa.Table.from_arrays(columns, schema=SCHEMA))


def folded(spans: pa.Table) -> pa.Table:
    """Return fewer ranges of the same numbers, of which those of several are in two of them."""
    return pa.concat_tables([merged(spans), twice(spans)])


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
    return int((integers_of(islands["last"]) - integers_of(islands["first"]) + 1).sum())


def of_epochs(islands: pa.Table, epochs: pa.Array) -> pa.Table:
    """Return the islands of these epochs."""
    return islands.filter(pc.is_in(islands["epoch"], value_set=epochs))


def holders(rows: pa.Table, spans: Sequence[tuple[Any, ...]]) -> Array:
    """Return the place of that span which holds each row's number, -1 for none.

    A span begins with STREAM, its first and its last number; those of a stream do not overlap.
    """
    if not spans:
        return np.full(rows.num_rows, -1)
    columns = list(zip(*spans, strict=True))
    named = [strings(column) for column in columns[:3]]
    ends = [integers(np.array(column, np.int64)) for column in columns[3:5]]
    return holding(rows, pa.Table.from_arrays([*named, *ends], names=SCHEMA.names[:5]))


def holding(rows: pa.Table, spans: pa.Table) -> Array:
    """Return the place of that range, of some that do not overlap, which holds each row's number.

    It is -1 for none.
    """
    names = [each.select(list(STREAM)).cast(_NAMES) for each in (rows, spans)]
    first, last = (integers_of(spans[name]) for name in ("first", "last"))
    number = np.concatenate([integers_of(rows["seq"]), first])
    is_span = np.arange(len(number)) >= rows.num_rows
    group = _groups(pa.concat_tables(names))
    order = np.lexsort((~is_span, number, group))
    nearest = np.maximum.accumulate(np.where(is_span[order], np.arange(len(order)), -1))
    before = order[nearest]
    there = (nearest >= 0) & (group[before] == group[order]) & ~is_span[order]
    span = np.where(there, before - rows.num_rows, 0)
    there &= number[order] <= last[span]
    found = np.full(len(number), -1)
    found[order[there]] = span[there]
    return found[: rows.num_rows]


def each(islands: pa.Table) -> Iterator[Island]:
    """Yield the islands one by one."""
    for part in islands.select(SCHEMA.names).to_batches(max_chunksize=AT_ONCE):
        yield from map(Island, *(column.to_pylist() for column in part.columns))


def _none() -> pa.Table:
    return pa.Table.from_batches([], SCHEMA)  # `empty_table` would load pandas


def _ordered(spans: pa.Table) -> tuple[pa.Table, Array, Array, Array, Array]:
    """Return ranges whole, and the order of their streams and numbers.

    With it come the numbers of their streams, their first and their last numbers in that order.
    """
    whole = spans.combine_chunks()
    group = _groups(whole)
    first, last = (integers_of(whole[name]) for name in ("first", "last"))
    order = np.lexsort((last, first, group))
    return whole, order, group[order], first[order], last[order]


def _groups(table: pa.Table) -> Array:
    """Return a number for each row that is the same for the rows of a stream, in their order."""
    group = np.zeros(table.num_rows, np.int64)
    for name in STREAM:
        codes, values = coded(table[name])
        group = group * len(values) + codes
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

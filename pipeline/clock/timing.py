"""The time that holds for each message: rows in, rows with times out."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.clock.spans import Correction
from pipeline.policy import believed, in_range, receipt
from pipeline.tables.arrays import integers
from pipeline.tables.islands import holders

_NONE = pa.nulls(1, pa.int64())[0]  # `pa.scalar` would load pandas where nobody times rows


def timed(rows: pa.Table, known: Sequence[Correction], read_ms: int) -> pa.Table:
    """Return the rows with `event_time`, `time_source`, `time_uncertainty_ms` and what follows.

    `rows` has the key, `time`, `received` and `reading_time`; they were read at `read_ms`. Added,
    or put in place of what was there, are also `lateness_ms` and `event_date`.
    """
    offset, uncertainty = _corrections(rows, known)
    ms, source = _event(rows, offset, read_ms)
    moment = ms.cast(pa.timestamp("ms", tz="UTC"))
    by_clock = pc.fill_null(pc.equal(source, "clock"), fill_value=False)
    columns = {
        "event_time": moment.cast(pa.timestamp("us", tz="UTC")),
        "time_source": source,
        "time_uncertainty_ms": pc.if_else(by_clock, uncertainty, _NONE),
        "lateness_ms": pc.subtract(rows["received"], ms),
        "event_date": ms.cast(pa.timestamp("ms")).cast(pa.date32()),
    }
    for name, column in columns.items():
        place = rows.schema.get_field_index(name)
        add = rows.append_column if place < 0 else partial(rows.set_column, place)
        rows = add(name, column)
    return rows


def _corrections(rows: pa.Table, known: Sequence[Correction]) -> tuple[pa.Array, pa.Array]:
    """Return what is to be added to each row's `time`, and how uncertain that is."""
    places = holders(rows, known)
    none = np.zeros(1, np.int64)  # the place -1 is the last
    offset = np.append(np.array([each.offset_ms for each in known], np.int64), none)
    uncertainty = np.append(np.array([each.uncertainty_ms for each in known], np.int64), none)
    return integers(offset[places], places >= 0), integers(uncertainty[places], places >= 0)


def _event(
    rows: pa.Table, offset: pa.Array, read_ms: int
) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """Return each row's time in ms, and whose it is."""
    time, received, reading = rows["time"], rows["received"], rows["reading_time"]
    latest = receipt(received, read_ms)
    corrected = believed(_sum(time, offset), latest)
    own_corrected = believed(_sum(reading, offset), latest)
    # A reading's time is by the gateway's clock, as a bridge stamps it, if it lies nearer to what
    # that clock said than to what it should have said; then it is off by as much.
    nearer = pc.less(_distance(reading, time), _distance(reading, corrected))
    own, accepted = believed(reading, latest), believed(time, latest)
    received = pc.if_else(in_range(received), received, _NONE)
    sources = (
        (pc.if_else(nearer, own_corrected, _NONE), "clock"),
        (own, "reading"),
        (corrected, "clock"),
        (accepted, "gateway"),
        (pc.if_else(pc.less(latest, received), latest, _NONE), "read"),
        (received, "received"),
    )
    named = [
        pc.if_else(pc.is_valid(ms), name, pa.scalar(None, pa.string())) for ms, name in sources
    ]
    return pc.coalesce(*(ms for ms, _ in sources)), pc.coalesce(*named)


def _sum(one: pa.ChunkedArray, other: pa.Array) -> pa.ChunkedArray:
    """Return sums of 64-bit integers, null for one that does not fit."""
    total = pc.add(one, other)
    return _unless_passed(total, pc.bit_wise_xor(one, total), pc.bit_wise_xor(other, total))


def _distance(one: pa.ChunkedArray, other: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return how far 64-bit integers are apart, null for one that does not fit."""
    apart = pc.subtract(one, other)
    found = _unless_passed(apart, pc.bit_wise_xor(one, other), pc.bit_wise_xor(one, apart))
    return pc.abs(found)


def _unless_passed(
    result: pa.ChunkedArray, one: pa.ChunkedArray, other: pa.ChunkedArray
) -> pa.ChunkedArray:
    """Return results, null where both of two numbers have the sign bit: it passed 64 bits."""
    return pc.if_else(pc.less(pc.bit_wise_and(one, other), 0), _NONE, result)

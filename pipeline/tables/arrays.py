"""Arrow columns as numpy arrays and back, without pandas, which each task else would load."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Array = np.ndarray[Any, np.dtype[Any]]


class Coded(NamedTuple):
    """A column of texts as places in its sorted, distinct values; -1 for null."""

    codes: Array
    values: pa.Array

    def take(self, places: Array) -> pa.Array:
        """Return the texts of these rows."""
        return texts(self.values, self.codes[places])


def numbers(column: pa.ChunkedArray) -> Array:
    """Return a column of integers, doubles, booleans, dates or timestamps (µs); 0 for null."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp("us", tz=kind.tz)).cast(pa.int64())
    elif pa.types.is_boolean(kind):
        column = column.cast(pa.uint8())
    elif pa.types.is_date(kind):
        column = column.cast(pa.int32())
    dtype = np.dtype(str(column.type).replace("double", "float64"))
    if not len(column):  # `combine_chunks` of none loads pandas
        return np.empty(0, bool if pa.types.is_boolean(kind) else dtype)
    found = column.combine_chunks()
    values = np.frombuffer(found.buffers()[1], dtype, len(found), found.offset * dtype.itemsize)
    if found.null_count:
        values = np.where(valid(column), values, dtype.type(0))
    return values.astype(bool) if pa.types.is_boolean(kind) else values


def valid(column: pa.ChunkedArray) -> Array:
    """Say for each value whether it is not null."""
    if not column.null_count:
        return np.ones(len(column), bool)
    found = column.combine_chunks()
    bits = np.unpackbits(np.frombuffer(found.buffers()[0], np.uint8), bitorder="little")
    return bits[found.offset : found.offset + len(found)].astype(bool)


def coded(column: pa.ChunkedArray) -> Coded:
    """Return a column of texts, whose codes stand in the order of their UTF-8."""
    if not len(column):
        return Coded(np.empty(0, np.int64), strings([]))
    found = column.combine_chunks().dictionary_encode()
    order = numbers(pa.chunked_array([pc.sort_indices(found.dictionary)]))
    ranks = np.empty(len(order) + 1, np.int64)
    ranks[order] = np.arange(len(order))
    ranks[-1] = -1
    places = np.where(valid(column), numbers(pa.chunked_array([found.indices])), -1)
    return Coded(ranks[places], found.dictionary.take(integers(order.astype(np.int64))))


def strings(values: Sequence[str]) -> pa.Array:
    """Return texts as a column, which `pa.array` would load pandas for."""
    encoded = [value.encode() for value in values]
    begins = np.concatenate(([0], np.cumsum([len(each) for each in encoded]))).astype(np.int32)
    buffers = [None, pa.py_buffer(begins), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.string(), len(encoded), buffers)


def texts(values: pa.Array, codes: Array) -> pa.Array:
    """Return the values of these codes; null for -1."""
    return values.take(integers(codes, codes >= 0))


def integers(values: Array, there: Array | None = None) -> pa.Array:
    """Return 64-bit integers as a column; null where they are not there."""
    return _column(pa.int64(), np.ascontiguousarray(values, np.int64), there)


def doubles(values: Array, there: Array | None = None) -> pa.Array:
    """Return doubles as a column; null where they are not there."""
    return _column(pa.float64(), np.ascontiguousarray(values, np.float64), there)


def moments(values: Array, there: Array | None = None) -> pa.Array:
    """Return microseconds since 1970 as a column of timestamps."""
    kind = pa.timestamp("us", tz="UTC")
    return _column(kind, np.ascontiguousarray(values, np.int64), there)


def dates(values: Array) -> pa.Array:
    """Return days since 1970 as a column of dates."""
    return _column(pa.date32(), np.ascontiguousarray(values, np.int32), None)


def offsets(lengths: Array, there: Array) -> pa.Array:
    """Return where lists of these lengths begin, for those that are there; null for others."""
    begins = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    return _column(pa.int32(), begins, np.append(there, True))


def _column(kind: pa.DataType, values: Array, there: Array | None) -> pa.Array:
    bits = None
    if there is not None and not there.all():
        bits = pa.py_buffer(np.packbits(there, bitorder="little").tobytes())
    return pa.Array.from_buffers(kind, len(values), [bits, pa.py_buffer(values)])


def runs(*columns: Array) -> Array:
    """Return the places where a value of some columns is another one than before."""
    if not len(columns[0]):
        return np.empty(0, np.int64)
    changes = np.zeros(len(columns[0]), bool)
    changes[0] = True
    for column in columns:
        changes[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(changes)


def spread(of_run: Array, begins: Array, length: int) -> Array:
    """Return a value of each run for all elements of it."""
    return np.repeat(of_run, np.diff(np.append(begins, length)))


def last_place(where: Array, begins: Array) -> Array:
    """Return the last place in each run where something holds, -1 for none."""
    return np.maximum.reduceat(np.where(where, np.arange(len(where)), -1), begins)


def count(where: Array, begins: Array) -> Array:
    """Return how many elements of each run something holds for."""
    return np.add.reduceat(where.astype(np.int64), begins)


def total(of: Array, where: Array, begins: Array) -> Array:
    """Return the sum of those elements of each run for which something holds."""
    return np.add.reduceat(np.where(where, of, 0), begins)


def highest(of: Array, where: Array, begins: Array) -> Array:
    """Return the highest of those elements of each run for which something holds.

    Where it holds for none, it is the lowest number of its type.
    """
    least = -np.inf if of.dtype == np.float64 else np.iinfo(of.dtype).min
    return np.maximum.reduceat(np.where(where, of, least), begins)


def lowest(of: Array, where: Array, begins: Array) -> Array:
    """Return the lowest of those doubles of each run for which something holds, else infinity."""
    return np.minimum.reduceat(np.where(where, of, np.inf), begins)

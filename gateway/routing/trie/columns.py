"""Columns of numbers: one, two or four bytes each, without an object for any of them.

A column is never lengthened in place: compiled code holds a view of it, which would forbid that. A
large one has pages of the system to itself, which are allocated on first write and freed with the
column. So its spare capacity costs nothing, and replacing it by a longer one leaves no hole in the
heap.
"""

import mmap
from array import array
from typing import Literal, cast

Kind = Literal["I", "H", "B"]

WORDS: Kind = "I"
SHORTS: Kind = "H"
BYTES: Kind = "B"
"""Kinds of columns: numbers of four bytes, of two and of one."""

LEAST = 16
"""Places of a new column."""

LARGE = 16_384
"""Places from which a column has pages to itself."""

_FLAGS = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS


def zeros(size: int, kind: Kind = WORDS) -> memoryview:
    """Return `size` zeros."""
    if size < LARGE:
        return memoryview(array(kind, [0]) * size)  # a repeated array has no spare capacity
    return memoryview(mmap.mmap(-1, size * array(kind).itemsize, flags=_FLAGS)).cast(kind)


def resized(column: memoryview, size: int, used: int) -> memoryview:
    """Return a column of `size` places that begins with the first `used` ones of another."""
    old = memoryview(column)  # compiled code has a view of another type
    new = zeros(size, cast("Kind", old.format))
    new[:used] = old[:used]
    return new


def capacity_for(size: int) -> int:
    """Return the places of a column for more than `size` numbers, with spare capacity.

    That is twice as many if it costs nothing, otherwise a sixteenth more.
    """
    return size + max(LEAST, size if size >= LARGE else size >> 4)

"""Columns of numbers: four bytes each, in one piece of memory, without an object for any of them.

A column is never lengthened in place: compiled code holds a view of it, which would forbid that.
"""

from array import array

LEAST = 16
"""Places of a new column."""

ZERO = array("I", [0])  # repeated, it makes a column without room to grow


def zeros(size: int) -> "array[int]":
    """Return `size` zeros."""
    return ZERO * size


def resized(column: "array[int]", size: int) -> "array[int]":
    """Return a copy of `size` places: cut off, or with zeros behind what there was."""
    new = zeros(size)
    kept = min(size, len(column))
    memoryview(new)[:kept] = memoryview(column)[:kept]
    return new


def room_for(size: int) -> int:
    """Return the places of a column that is to hold one more than `size`: a sixteenth to spare."""
    return size + max(LEAST, size >> 4)

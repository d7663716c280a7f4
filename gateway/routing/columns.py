"""Columns of numbers: four bytes each, in one piece of memory, without an object for any of them.

A column is never lengthened in place: compiled code holds a view of it, which would forbid that.
"""

from array import array

LEAST = 16
"""Places of a new column."""


def zeros(size: int) -> "array[int]":
    """Return `size` zeros."""
    return array("I", bytes(4 * size))


def resized(column: "array[int]", size: int) -> "array[int]":
    """Return a copy of `size` places: cut off, or with zeros behind what there was."""
    if size <= len(column):
        return array("I", column[:size])
    new = array("I", column)
    new.frombytes(bytes(4 * (size - len(new))))
    return new


def room_for(size: int) -> int:
    """Return the places of a column that is to hold one more than `size`: a sixteenth to spare."""
    return size + max(LEAST, size >> 4)

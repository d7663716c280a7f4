"""Closed ranges of numbers without overlap, each with a value; what was put first holds."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class Span(NamedTuple, Generic[T]):
    """The numbers `first` to `last`, and what is said of them."""

    first: int
    last: int
    value: T


class Spans(Generic[T]):
    """Spans in rising order; a number keeps the value that it was given first."""

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._spans: list[Span[T]] = []

    def __iter__(self) -> Iterator[Span[T]]:
        return iter(self._spans)

    def overlapping(self, first: int, last: int) -> list[Span[T]]:
        """Return the spans that share a number with `first` to `last`."""
        begin = bisect_left(self._firsts, first)
        if begin and self._spans[begin - 1].last >= first:
            begin -= 1
        return self._spans[begin : bisect_left(self._firsts, last + 1)]

    def put(self, first: int, last: int, value: T) -> None:
        """Give the value to those numbers of `first` to `last` that have none."""
        for low, high in holes(self.overlapping(first, last), first, last):
            place = bisect_left(self._firsts, low)
            self._firsts.insert(place, low)
            self._spans.insert(place, Span(low, high, value))


def holes(
    covered: Iterable[tuple[int, ...] | Span[T]], first: int, last: int
) -> list[tuple[int, int]]:
    """Return the ranges of `first` to `last` that rising, disjoint ranges leave free."""
    free = []
    for each in covered:
        if each[0] > first:
            free.append((first, min(each[0] - 1, last)))
        first = max(first, each[1] + 1)
        if first > last:
            return free
    free.append((first, last))
    return free

"""Numbers as ranges: SQLite deletes those that follow each other in one step."""

from collections.abc import Collection, Iterable

Range = tuple[int, int]
"""First and last number."""


def ranges_of(numbers: Collection[int]) -> list[Range]:
    """Return the ranges that `numbers`, all different, make up, rising."""
    if numbers:
        first, last = min(numbers), max(numbers)
        if last - first + 1 == len(numbers):  # as mostly: no sorting
            return [(first, last)]
    return joined((number, number) for number in numbers)


def joined(ranges: Iterable[Range]) -> list[Range]:
    """Return ranges, those that follow each other as one, rising."""
    found: list[Range] = []
    for first, last in sorted(ranges):
        if found and first == found[-1][1] + 1:
            found[-1] = found[-1][0], last
        else:
            found.append((first, last))
    return found

"""Numbers as ranges: SQLite deletes a range in one step."""

from collections.abc import Collection, Iterable

Range = tuple[int, int]
"""First and last number."""


def ranges_of(numbers: Collection[int]) -> list[Range]:
    """Return the rising ranges that consist of `numbers`, all different."""
    if numbers:
        first, last = min(numbers), max(numbers)
        if last - first + 1 == len(numbers):  # usually: no sorting
            return [(first, last)]
    return joined((number, number) for number in numbers)


def joined(ranges: Iterable[Range]) -> list[Range]:
    """Return ranges in rising order, adjacent ones joined."""
    found: list[Range] = []
    for first, last in sorted(ranges):
        if found and first == found[-1][1] + 1:
            found[-1] = found[-1][0], last
        else:
            found.append((first, last))
    return found

"""Ids as ranges, so that rows which follow each other are deleted in one step of SQLite."""

from collections.abc import Collection


def ranges_of(identifiers: Collection[int]) -> list[tuple[int, int]]:
    """Return (first, last) of each range that `identifiers`, all different, make up, rising."""
    first, last = min(identifiers), max(identifiers)
    if last - first + 1 == len(identifiers):
        return [(first, last)]
    rising = sorted(identifiers)
    ranges: list[tuple[int, int]] = []
    first = last = rising[0]
    for identifier in rising[1:]:
        if identifier != last + 1:
            ranges.append((first, last))
            first = identifier
        last = identifier
    ranges.append((first, last))
    return ranges

"""Which numbers of the outbox's streams damage may have taken."""

import sqlite3
from dataclasses import dataclass

MAXIMUM_RANGES = 10_000
"""Ranges that are told; what is beyond is in none of them."""


@dataclass(frozen=True, slots=True)
class LostNumbers:
    """Numbers of a stream of which the outbox cannot say any more whether it held them.

    Both ends are included; `last` is None where the range has no known end. Some of these may
    have been delivered or filtered before: whoever knows better goes first.
    """

    epoch: str
    stream: str
    first: int
    last: int | None


def lost_numbers(outbox: sqlite3.Connection, spans: list[tuple[int, int]]) -> list[LostNumbers]:
    """Return the ranges between the rows of a salvaged outbox in which damage may lie.

    `spans` are the (first, last) ids of pages that were read whole: between two rows of one of
    them no row is lost. What came after the last row of a stream has no known end.
    """
    spans = sorted(spans)
    found: list[LostNumbers] = []
    last: dict[tuple[str, str], tuple[int, int]] = {}
    index = 0
    for identifier, epoch, stream, number in outbox.execute(
        "SELECT id, epoch, stream, seq FROM outbox ORDER BY id"
    ):
        while index < len(spans) and spans[index][1] < identifier:
            index += 1
        span_begins = spans[index][0] if index < len(spans) else identifier
        before, before_id = last.get((epoch, stream), (0, 0))
        if number > before + 1 and before_id < min(span_begins, identifier):
            found.append(LostNumbers(epoch, stream, before + 1, number - 1))
        last[epoch, stream] = (number, identifier)
    found += [
        LostNumbers(epoch, stream, number + 1, None)
        for (epoch, stream), (number, _) in last.items()
    ]
    return found[:MAXIMUM_RANGES]

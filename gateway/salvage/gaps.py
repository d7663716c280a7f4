"""Finds the numbers of the outbox's streams that damage may have lost."""

import sqlite3
from dataclasses import dataclass

MAXIMUM_RANGES = 10_000
"""Ranges that are reported; further ones are not."""


@dataclass(frozen=True, slots=True)
class LostNumbers:
    """Numbers of a stream that may have been in the outbox.

    Both ends are included; `last` is None if the end is unknown. Some of these may have been
    delivered or filtered before: a known outcome takes precedence.
    """

    epoch: str
    stream: str
    first: int
    last: int | None


def lost_numbers(outbox: sqlite3.Connection, spans: list[tuple[int, int]]) -> list[LostNumbers]:
    """Return the ranges between the rows of a salvaged outbox in which rows may be lost.

    `spans` are the (first, last) ids of pages that were read completely: between two rows of one of
    them no row is lost. After the last row of a stream the end is unknown.
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

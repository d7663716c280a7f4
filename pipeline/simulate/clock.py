"""How the clock of a made-up gateway runs: right, from 1970, or off until it is set."""

import random
from typing import Any

JUMPS = (-3_600_000, -90_000, 600, 7_200_000)
"""How far off (ms) a clock may be until it is set."""
FRESH = 5_000
"""What a clock that begins in 1970 shows (ms) when the gateway starts."""

Span = tuple[int, int, int]
"""First and last number, and what is to be added (ms) to the times of the clock."""


def spans(chance: random.Random, begins: int, last: int, *, clockless: bool) -> list[Span]:
    """Return the spans of a start at `begins` (ms) that gives `last` numbers."""
    offset = begins - FRESH if clockless else 0
    if chance.random() < 0.85 or last < 2:
        return [(1, last, offset)]
    middle = chance.randint(1, last - 1)
    return [(1, middle, offset or chance.choice(JUMPS)), (middle + 1, last, 0)]


def offset_of(known: list[Span], number: int) -> int:
    """Return what is to be added to the time of a number."""
    return next(offset for first, last, offset in known if first <= number <= last)


def records(epoch: str, known: list[Span], begins: int, lasting: int) -> list[dict[str, Any]]:
    """Return the clock records of a start, none for a clock that was always right."""
    if all(offset == 0 for _, _, offset in known):
        return []
    found = []
    for index, (first, last, offset) in enumerate(known):
        since = begins - offset
        record = {"epoch": epoch, "offset_ms": offset, "uncertainty_ms": 70, "from": since}
        record |= {"to": since + lasting, "numbers": {"main": [first, last]}}
        found.append(record | {"boot": epoch, "uptime_ms": 5_000 + index})
    return found

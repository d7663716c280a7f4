"""What arrived beside what the ledger says: every number that was given is accounted for."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from pipeline.ledger.accounts import Account, Key
from pipeline.ledger.entry import OUTCOMES as REPORTED
from pipeline.ledger.spans import holes
from pipeline.tables.islands import Island

MISSING = "missing"
"""The ledger says that the fleet acknowledged a number, and it is not in the tables."""
NOT_REPORTED = "not_reported"
"""Neither came the number nor a word of the ledger on it: it may still wait at the gateway."""
UNRECORDED = "unrecorded"
"""The gateway ended without a stop before a number was on its disk: nobody will tell of it."""
OUTCOMES = (*REPORTED, MISSING, NOT_REPORTED, UNRECORDED)
BAD = (MISSING, "lost")
"""What must not happen to a message that was acknowledged."""


class Gap(NamedTuple):
    """Numbers that did not arrive, how they ended, and the event times (ms) around them."""

    gateway: str
    epoch: str
    stream: str
    first: int
    last: int
    outcome: str
    cause: str
    after_ms: int | None
    before_ms: int | None


@dataclass
class Stream:
    """All numbers of a stream by outcome; they add up to `emitted`."""

    key: Key
    emitted: int
    outcomes: Counter[str] = field(default_factory=Counter)
    gaps: list[Gap] = field(default_factory=list)


def compare(account: Account, arrived: Iterable[Island]) -> Stream:
    """Return the stream's numbers by outcome; `arrived` are its islands in rising order.

    A number that arrived is delivered, whatever the ledger says of it.
    """
    islands = list(arrived)
    emitted = max([account.last, *(island.last for island in islands)])
    stream = Stream(account.key, emitted)
    stream.outcomes["delivered"] = sum(each.last - each.first + 1 for each in islands)
    ranges = [(each.first, each.last) for each in islands]
    ends = {each.last: each.last_time for each in islands}
    begins = {each.first: each.first_time for each in islands}
    several = {span: Counter(counts) for span, counts in account.several.items()}
    for first, last in holes(ranges, 1, emitted):
        around = ends.get(first - 1), begins.get(last + 1)
        for low, high, outcome, cause in _unarrived(account, first, last):
            if several:
                stream.outcomes.update(_counts(several, low, high, outcome))
            else:
                stream.outcomes[outcome] += high - low + 1
            stream.gaps.append(Gap(*account.key, low, high, outcome, cause, *around))
    return stream


def _counts(
    several: dict[tuple[int, int], Counter[str]], low: int, high: int, outcome: str
) -> Counter[str]:
    """Return the numbers `low` to `high` by outcome.

    In a range of several outcomes nobody knows which number had which: those that did not
    arrive take the outcomes of such numbers first, and `delivered` last.
    """
    left = high - low + 1
    counts: Counter[str] = Counter()
    for span in [span for span in several if span[0] <= low and high <= span[1]]:
        for each in (*OUTCOMES[1:6], "delivered"):
            taken = min(left, several[span][each])
            several[span][each] -= taken
            counts[MISSING if each == "delivered" else each] += taken
            left -= taken
    counts[outcome] += left
    return +counts


def _unarrived(account: Account, first: int, last: int) -> list[tuple[int, int, str, str]]:
    """Return what the ledger says of numbers that did not arrive, in rising order."""
    known = account.reported.overlapping(first, last)
    parts = []
    for low, high in holes(known, first, last):
        parts += _unreported(account.ended, low, high)
    for low, high, each in known:
        outcome = MISSING if each.outcome == "delivered" else each.outcome
        parts.append((max(low, first), min(high, last), outcome, each.cause))
    return sorted(parts)


def _unreported(ended: int | None, low: int, high: int) -> list[tuple[int, int, str, str]]:
    """Return what is to be said of numbers without a word; what was on disk has one to come."""
    if ended is None or high <= ended:
        return [(low, high, NOT_REPORTED, "")]
    cause = "not on disk when the gateway went down"
    unrecorded = (max(low, ended + 1), high, UNRECORDED, cause)
    return [unrecorded] if low > ended else [(low, ended, NOT_REPORTED, ""), unrecorded]

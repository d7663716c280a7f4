"""A range of the ledger: numbers of one stream that follow each other and ended the same way."""

from collections.abc import Iterable
from dataclasses import dataclass

from gateway.storage.outbox.outcome import Outcome

SHORT_RUN = 32
"""Numbers below which ranges that different rules filtered become one, with counts by rule.

Two rules that take turns in a stream would otherwise cost a range for each message.
"""

MAX_REASONS = 8
"""Reasons that a range counts one by one; the rarest become `other`."""

OTHER = "other"

_OUTCOMES = {outcome.value for outcome in Outcome}


@dataclass(slots=True)
class LedgerRange:
    """The numbers `first` to `last` of (epoch, stream), with how many had each reason.

    `uplink` is the name of that of several at which they ended so. `id` is given when it goes to
    disk. The reasons of a range that had to be compacted are
    outcomes: its own `outcome` is the gravest of them.
    """

    epoch: str
    stream: str
    first: int
    last: int
    outcome: Outcome
    reasons: dict[str, int]
    id: int = 0
    uplink: str = ""

    @property
    def numbers(self) -> int:
        """How many numbers it covers."""
        return self.last - self.first + 1

    @property
    def reason(self) -> str:
        """The reason, or several as `<reason>*<count>`, most frequent first, between spaces."""
        if len(self.reasons) == 1:
            return next(iter(self.reasons))
        counted = sorted(self.reasons.items(), key=lambda item: (-item[1], item[0]))
        return " ".join(f"{_word(reason, self.outcome)}*{count}" for reason, count in counted)

    def fits(self, later: "LedgerRange") -> bool:
        """Return whether `later`, which begins behind this one, may become a part of it."""
        if self.outcome is not later.outcome or self.compacted or later.compacted:
            return False
        if len(self.reasons) == 1 and self.reasons.keys() == later.reasons.keys():
            return True
        return self.outcome is Outcome.FILTERED and self.mixes and later.mixes

    @property
    def compacted(self) -> bool:
        """Whether numbers with several outcomes became one range: its reasons are outcomes then."""
        return len(self.reasons) > 1 and self.reasons.keys() <= _OUTCOMES

    @property
    def mixes(self) -> bool:
        """Whether numbers of other reasons may join: it is short, or has several already."""
        return self.numbers < SHORT_RUN or len(self.reasons) > 1

    def take_in(self, later: "LedgerRange") -> None:
        """Extend by a range that begins behind this one and fits."""
        self.last = later.last
        self.reasons = merged(self.reasons, later.reasons)


def merged(reasons: dict[str, int], more: dict[str, int]) -> dict[str, int]:
    """Return the counts of both, at most MAX_REASONS by name."""
    counts = dict(reasons)
    for reason, count in more.items():
        counts[reason] = counts.get(reason, 0) + count
    if len(counts) > MAX_REASONS:
        other = counts.pop(OTHER, 0)
        rarest = sorted(counts, key=lambda reason: (counts[reason], reason))
        for reason in rarest[: len(counts) - MAX_REASONS + 1]:
            other += counts.pop(reason)
        counts[OTHER] = other
    return counts


def parse_reason(reason: str, numbers: int) -> dict[str, int]:
    """Return what `LedgerRange.reason` showed of a range of so many numbers."""
    if "*" not in reason:
        return {reason: numbers}
    pairs = (word.rpartition("*") for word in reason.split(" "))
    return {name: int(count) for name, _, count in pairs}


def collapsed(ranges: Iterable[LedgerRange]) -> list[LedgerRange]:
    """Return the ranges in order, those made one that follow each other and fit."""
    found: list[LedgerRange] = []
    for each in sorted(ranges, key=_order):
        before = found[-1] if found else None
        if before is not None and follows(before, each) and before.fits(each):
            before.take_in(each)
        else:
            found.append(each)
    return found


def _order(each: LedgerRange) -> tuple[str, str, str, int]:
    return each.uplink, each.epoch, each.stream, each.first


def follows(before: LedgerRange, each: LedgerRange) -> bool:
    """Return whether `each` begins with the number behind `before`."""
    return each.first == before.last + 1 and _order(before)[:3] == _order(each)[:3]


def _word(reason: str, outcome: Outcome) -> str:
    return reason.replace(" ", "_") or outcome.value

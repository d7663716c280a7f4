"""A range of the ledger: numbers of one stream that follow each other and ended the same way."""

from collections.abc import Iterable
from dataclasses import dataclass

from gateway.storage.outbox.fate import Fate

SHORT_RUN = 32
"""Numbers below which ranges that different rules filtered become one, with counts by rule.

Two rules that take turns in a stream would otherwise cost a range for each message.
"""

MAX_CAUSES = 8
"""Causes that a range counts one by one; the rarest become `other`."""

OTHER = "other"

_FATES = {fate.value for fate in Fate}


@dataclass(slots=True)
class LedgerRange:
    """The numbers `first` to `last` of (epoch, stream), with how many had each cause.

    `id` is given when it goes to disk. The causes of a range that had to be made coarse are
    fates: its own `fate` is the gravest of them.
    """

    epoch: str
    stream: str
    first: int
    last: int
    fate: Fate
    causes: dict[str, int]
    id: int = 0

    @property
    def numbers(self) -> int:
        """How many numbers it covers."""
        return self.last - self.first + 1

    @property
    def cause(self) -> str:
        """The cause, or several as `<cause>*<count>`, most frequent first, between spaces."""
        if len(self.causes) == 1:
            return next(iter(self.causes))
        counted = sorted(self.causes.items(), key=lambda item: (-item[1], item[0]))
        return " ".join(f"{_word(cause, self.fate)}*{count}" for cause, count in counted)

    def fits(self, later: "LedgerRange") -> bool:
        """Return whether `later`, which begins behind this one, may become a part of it."""
        if self.fate is not later.fate or self.coarse or later.coarse:
            return False
        if len(self.causes) == 1 and self.causes.keys() == later.causes.keys():
            return True
        return self.fate is Fate.FILTERED and self.mixes and later.mixes

    @property
    def coarse(self) -> bool:
        """Whether numbers with several fates became one range: its causes are fates then."""
        return len(self.causes) > 1 and self.causes.keys() <= _FATES

    @property
    def mixes(self) -> bool:
        """Whether numbers of other causes may join: it is short, or has several already."""
        return self.numbers < SHORT_RUN or len(self.causes) > 1

    def take_in(self, later: "LedgerRange") -> None:
        """Extend by a range that begins behind this one and fits."""
        self.last = later.last
        self.causes = merged(self.causes, later.causes)


def merged(causes: dict[str, int], more: dict[str, int]) -> dict[str, int]:
    """Return the counts of both, at most MAX_CAUSES by name."""
    counts = dict(causes)
    for cause, count in more.items():
        counts[cause] = counts.get(cause, 0) + count
    if len(counts) > MAX_CAUSES:
        other = counts.pop(OTHER, 0)
        rarest = sorted(counts, key=lambda cause: (counts[cause], cause))
        for cause in rarest[: len(counts) - MAX_CAUSES + 1]:
            other += counts.pop(cause)
        counts[OTHER] = other
    return counts


def parse_cause(cause: str, numbers: int) -> dict[str, int]:
    """Return what `LedgerRange.cause` showed of a range of so many numbers."""
    if "*" not in cause:
        return {cause: numbers}
    pairs = (word.rpartition("*") for word in cause.split(" "))
    return {name: int(count) for name, _, count in pairs}


def collapsed(ranges: Iterable[LedgerRange]) -> list[LedgerRange]:
    """Return the ranges in order, those made one that follow each other and fit."""
    found: list[LedgerRange] = []
    for each in sorted(ranges, key=lambda item: (item.epoch, item.stream, item.first)):
        before = found[-1] if found else None
        if before is not None and follows(before, each) and before.fits(each):
            before.take_in(each)
        else:
            found.append(each)
    return found


def follows(before: LedgerRange, each: LedgerRange) -> bool:
    """Return whether `each` begins with the number behind `before`."""
    same_stream = before.epoch == each.epoch and before.stream == each.stream
    return same_stream and each.first == before.last + 1


def _word(cause: str, fate: Fate) -> str:
    return cause.replace(" ", "_") or fate.value

"""A range of the ledger: consecutive numbers of one stream with the same outcome.

It is a row of the table `ledger`, whose statements are here.
"""

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from gateway.storage.engine.connection import Row
from gateway.storage.outbox.row import Outcome

SHORT_RUN = 32
"""Numbers below which ranges that different rules filtered are joined, with counts by rule.

Two rules that alternate in a stream would otherwise cost a range for each message.
"""

MAX_REASONS = 8
"""Reasons that a range counts separately; the rarest become `other`."""

OTHER = "other"

GRAVITY = (Outcome.DELIVERED, Outcome.FILTERED, Outcome.EXPIRED, Outcome.EVICTED, Outcome.REJECTED)
"""Outcomes that may be joined into one range, the gravest last: the range gets the gravest.

`lost` is excluded: no number that arrived, or was dropped by a rule, is ever reported as lost.
"""

INSERT = (
    "INSERT INTO ledger (epoch, stream, first, uplink, last, outcome, reason, id)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)
_THIS = "WHERE epoch = ? AND stream = ? AND first = ? AND uplink = ?"
UPDATE = f"UPDATE ledger SET last = ?, outcome = ?, reason = ? {_THIS}"  # noqa: S608 - fixed
DELETE = f"DELETE FROM ledger {_THIS}"  # noqa: S608 - fixed
TOTALS = "SELECT uplink, count(*), max(id) FROM ledger GROUP BY uplink"
PAGE = (
    "SELECT epoch, stream, first, uplink, last, outcome, reason, id FROM ledger"
    " WHERE (epoch, stream, first, uplink) > (?, ?, ?, ?) AND uplink = ? AND id <= ?"
    " ORDER BY epoch, stream, first LIMIT ?"
)
ADOPT = "UPDATE OR IGNORE ledger SET uplink = ? WHERE uplink IN ('', ?)"
FORGET = "DELETE FROM ledger WHERE uplink NOT IN (SELECT value FROM json_each(?))"

Key = tuple[str, str, int, str]

START: Key = ("", "", 0, "")
"""A key before all others."""

_OUTCOMES = {outcome.value for outcome in Outcome}


@dataclass(slots=True)
class LedgerRange:
    """The numbers `first` to `last` of (epoch, stream), with the count of each reason.

    `uplink` is the uplink of this outcome, if there are several. `id` is assigned when it is
    written. In a compacted range the reasons are outcomes, and its own `outcome` is the gravest of
    them.
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
        """The reason, or several as `<reason>*<count>`, the most frequent first."""
        if len(self.reasons) == 1:
            return next(iter(self.reasons))
        counted = sorted(self.reasons.items(), key=lambda item: (-item[1], item[0]))
        return " ".join(f"{_word(reason, self.outcome)}*{count}" for reason, count in counted)

    def fits(self, later: "LedgerRange") -> bool:
        """Return whether `later`, which begins directly after this one, may become a part of it."""
        if self.outcome is not later.outcome or self.compacted or later.compacted:
            return False
        if len(self.reasons) == 1 and self.reasons.keys() == later.reasons.keys():
            return True
        return self.outcome is Outcome.FILTERED and self.mixes and later.mixes

    @property
    def compacted(self) -> bool:
        """Whether numbers with several outcomes were joined: its reasons are outcomes then."""
        return len(self.reasons) > 1 and self.reasons.keys() <= _OUTCOMES

    @property
    def mixes(self) -> bool:
        """Whether numbers with other reasons may join: it is short, or has several already."""
        return self.numbers < SHORT_RUN or len(self.reasons) > 1

    def extend(self, later: "LedgerRange") -> None:
        """Extend by a fitting range that begins directly after this one."""
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
    """Parse `LedgerRange.reason` of a range of so many numbers."""
    if "*" not in reason:
        return {reason: numbers}
    pairs = (word.rpartition("*") for word in reason.split(" "))
    return {name: int(count) for name, _, count in pairs}


def collapsed(ranges: Iterable[LedgerRange]) -> list[LedgerRange]:
    """Return the ranges in order; fitting adjacent ones are joined."""
    found: list[LedgerRange] = []
    for each in sorted(ranges, key=_order):
        before = found[-1] if found else None
        if before is not None and follows(before, each) and before.fits(each):
            before.extend(each)
        else:
            found.append(each)
    return found


def _order(each: LedgerRange) -> tuple[str, str, str, int]:
    return each.uplink, each.epoch, each.stream, each.first


def follows(before: LedgerRange, each: LedgerRange) -> bool:
    """Return whether `each` begins directly after `before`."""
    return each.first == before.last + 1 and _order(before)[:3] == _order(each)[:3]


def _word(reason: str, outcome: Outcome) -> str:
    return reason.replace(" ", "_") or outcome.value


def compacted(ranges: Iterable[LedgerRange]) -> list[LedgerRange]:
    """Return ranges for the same numbers, with all adjacent ones joined.

    `ranges` are ordered by epoch, stream and number. A joined range no longer says which number had
    which outcome, but how many: `filtered*90 evicted*10`.
    """
    found: list[LedgerRange] = []
    for each in ranges:
        before = found[-1] if found else None
        if before is None or not follows(before, each) or not _may_merge(before, each):
            found.append(each)
        elif before.fits(each):
            before.extend(each)
        else:
            _blur(before, each)
    return found


def _may_merge(before: LedgerRange, each: LedgerRange) -> bool:
    # no number that ended otherwise may become lost by being joined
    if before.outcome is Outcome.LOST or each.outcome is Outcome.LOST:
        return before.fits(each)
    return True


def _blur(before: LedgerRange, each: LedgerRange) -> None:
    if before.outcome is each.outcome and not (before.compacted or each.compacted):
        before.extend(each)
        return
    before.reasons = merged(_outcomes(before), _outcomes(each))
    # the fleet must not believe that something arrived which did not
    before.outcome = max(before.outcome, each.outcome, key=GRAVITY.index)
    before.last = each.last


def _outcomes(each: LedgerRange) -> dict[str, int]:
    return each.reasons if each.compacted else {each.outcome.value: each.numbers}


def key_of(each: LedgerRange) -> Key:
    """Return the primary key of a range."""
    return each.epoch, each.stream, each.first, each.uplink


def inserted(each: LedgerRange) -> Row:
    """Return the values for INSERT."""
    return (*key_of(each), each.last, each.outcome.value, each.reason, each.id)


def updated(each: LedgerRange) -> Row:
    """Return the values for UPDATE."""
    return (each.last, each.outcome.value, each.reason, *key_of(each))


def ranges(cursor: sqlite3.Cursor) -> list[LedgerRange]:
    """Return the rows of PAGE."""
    return [_range(values) for values in cursor]


def _range(values: tuple[Any, ...]) -> LedgerRange:
    epoch, stream, first, uplink, last, outcome, reason, identifier = values
    reasons = parse_reason(reason, last - first + 1)
    return LedgerRange(epoch, stream, first, last, Outcome(outcome), reasons, identifier, uplink)

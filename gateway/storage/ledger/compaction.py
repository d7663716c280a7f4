"""Fewer ranges for the same numbers, when there are more than the ledger keeps."""

from collections.abc import Iterable

from gateway.storage.ledger.range import LedgerRange, follows, merged
from gateway.storage.outbox.outcome import Outcome

GRAVITY = (Outcome.DELIVERED, Outcome.FILTERED, Outcome.EXPIRED, Outcome.EVICTED, Outcome.REJECTED)
"""The outcomes that may become one range, the gravest last: such a range says the worst of it.

`lost` is not among them: no number that arrived, or was given up by a rule, is ever said lost.
"""


def compacted(ranges: Iterable[LedgerRange]) -> list[LedgerRange]:
    """Return ranges for the same numbers, each joined to the one before wherever it follows.

    `ranges` are in order of epoch, stream and number. What one range says of its numbers is no
    longer which ended how, but how many: `filtered*90 evicted*10`.
    """
    found: list[LedgerRange] = []
    for each in ranges:
        before = found[-1] if found else None
        if before is None or not follows(before, each) or not _may_join(before, each):
            found.append(each)
        elif before.fits(each):
            before.take_in(each)
        else:
            _blur(before, each)
    return found


def _may_join(before: LedgerRange, each: LedgerRange) -> bool:
    if before.outcome is Outcome.LOST or each.outcome is Outcome.LOST:
        return before.fits(each)
    return True


def _blur(before: LedgerRange, each: LedgerRange) -> None:
    if before.outcome is each.outcome and not (before.compacted or each.compacted):
        before.take_in(each)
        return
    before.reasons = merged(_outcomes(before), _outcomes(each))
    before.outcome = max(before.outcome, each.outcome, key=GRAVITY.index)
    before.last = each.last


def _outcomes(each: LedgerRange) -> dict[str, int]:
    return each.reasons if each.compacted else {each.outcome.value: each.numbers}

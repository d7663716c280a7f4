"""Fewer ranges for the same numbers, when there are more than the ledger keeps."""

from collections.abc import Iterable

from gateway.storage.ledger.range import LedgerRange, follows, merged
from gateway.storage.outbox.fate import Fate

GRAVITY = (Fate.DELIVERED, Fate.FILTERED, Fate.EXPIRED, Fate.EVICTED, Fate.REJECTED)
"""The fates that may become one range, the gravest last: such a range says the worst of it.

`lost` is not among them: no number that arrived, or was given up by a rule, is ever said lost.
"""


def coarse(ranges: Iterable[LedgerRange]) -> list[LedgerRange]:
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
    if before.fate is Fate.LOST or each.fate is Fate.LOST:
        return before.fits(each)
    return True


def _blur(before: LedgerRange, each: LedgerRange) -> None:
    if before.fate is each.fate and not (before.coarse or each.coarse):
        before.take_in(each)
        return
    before.causes = merged(_fates(before), _fates(each))
    before.fate = max(before.fate, each.fate, key=GRAVITY.index)
    before.last = each.last


def _fates(each: LedgerRange) -> dict[str, int]:
    return each.causes if each.coarse else {each.fate.value: each.numbers}

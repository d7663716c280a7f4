"""What became of numbers since the last batch, as ranges in memory."""

from gateway.storage.ledger.compaction import compacted
from gateway.storage.ledger.range import LedgerRange, collapsed
from gateway.storage.outbox.outcome import Outcome

MAX_GATHERED_RANGES = 10_000
"""Ranges in memory from which they are to be written, or compacted while the disk refuses."""


class GatheredRanges:
    """Collapses numbers into ranges as they come, mostly in rising order."""

    def __init__(self) -> None:
        self._ranges: list[LedgerRange] = []
        self._newest: dict[tuple[str, str, str, Outcome], LedgerRange] = {}
        self._bound = MAX_GATHERED_RANGES

    def __len__(self) -> int:
        return len(self._ranges)

    @property
    def full(self) -> bool:
        """True from MAX_GATHERED_RANGES on, or twice what could not be compactedr."""
        return len(self._ranges) >= self._bound

    def add(self, each: LedgerRange) -> None:
        """Note the end of numbers, all for one reason, that mostly follow those of the call before.

        Whoever calls does not keep the range.
        """
        key = (each.uplink, each.epoch, each.stream, each.outcome)
        newest = self._newest.get(key)
        if newest is not None and newest.last == each.first - 1:
            reasons = newest.reasons
            ((reason, count),) = each.reasons.items()
            if reason in reasons and (len(reasons) == 1 or each.outcome is Outcome.FILTERED):
                newest.last = each.last  # what `fits` and `take_in` would do
                reasons[reason] += count
                return
            if newest.fits(each):
                newest.take_in(each)
                return
        self._ranges.append(each)
        self._newest[key] = each

    def put(self, each: LedgerRange) -> None:
        """Note the end of a whole range."""
        self._ranges.append(each)

    def take(self) -> list[LedgerRange]:
        """Return all ranges in order, and begin anew."""
        ranges = collapsed(self._ranges)
        self._ranges = []
        self._newest.clear()
        self._bound = MAX_GATHERED_RANGES
        return ranges

    def compact(self) -> int:
        """Join what can be joined; return how many ranges fewer that makes."""
        before = len(self._ranges)
        self._ranges = compacted(self.take())
        self._bound = max(MAX_GATHERED_RANGES, 2 * len(self._ranges))
        return before - len(self._ranges)

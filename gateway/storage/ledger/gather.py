"""What became of numbers since the last batch, as ranges in memory."""

from gateway.storage.ledger.coarse import coarse
from gateway.storage.ledger.range import LedgerRange, collapsed
from gateway.storage.outbox.fate import Fate

MAX_GATHERED_RANGES = 10_000
"""Ranges in memory from which they are to be written, or made coarse while the disk refuses."""


class GatheredRanges:
    """Collapses numbers into ranges as they come, mostly in rising order."""

    def __init__(self) -> None:
        self._ranges: list[LedgerRange] = []
        self._newest: dict[tuple[str, str, Fate], LedgerRange] = {}
        self._bound = MAX_GATHERED_RANGES

    def __len__(self) -> int:
        return len(self._ranges)

    @property
    def full(self) -> bool:
        """True from MAX_GATHERED_RANGES on, or twice what could not be made coarser."""
        return len(self._ranges) >= self._bound

    def add(self, epoch: str, stream: str, first: int, last: int, fate: Fate, cause: str) -> None:
        """Note the end of the numbers `first` to `last`."""
        key = (epoch, stream, fate)
        newest = self._newest.get(key)
        if newest is not None and newest.last == first - 1:
            causes = newest.causes
            if cause in causes and (len(causes) == 1 or fate is Fate.FILTERED):
                newest.last = last  # what `fits` and `take_in` would do
                causes[cause] += last - first + 1
                return
            each = LedgerRange(epoch, stream, first, last, fate, {cause: last - first + 1})
            if newest.fits(each):
                newest.take_in(each)
                return
        else:
            each = LedgerRange(epoch, stream, first, last, fate, {cause: last - first + 1})
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

    def make_coarse(self) -> int:
        """Join what can be joined; return how many ranges fewer that makes."""
        before = len(self._ranges)
        self._ranges = coarse(self.take())
        self._bound = max(MAX_GATHERED_RANGES, 2 * len(self._ranges))
        return before - len(self._ranges)

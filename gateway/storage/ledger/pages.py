"""Reads the ledger for whoever tells the fleet, and compacts it when it grows too long."""

import logging
from collections.abc import Callable, Iterable

from gateway.counters import Counters
from gateway.storage.engine.database import Database
from gateway.storage.engine.writer import Writer
from gateway.storage.ledger.ledger import Ledger
from gateway.storage.ledger.range import PAGE, START, Key, LedgerRange, compacted, key_of, ranges

logger = logging.getLogger(__name__)

MAX_LEDGER_RANGES = 100_000
"""Ranges on disk, beside one for each row of the outbox, beyond which they are compacted."""

COARSE_PAGE = 4_000
"""Ranges that are compacted in one step."""

GROWTH = 1.1
"""How much longer than after the last time the ledger must be to be compacted again."""


class LedgerPages:
    """Gives the ledger's ranges for an uplink in passes, in the order of epoch, stream and number.

    A pass gives each range that was there when it began, once; ranges that were given and not
    reported are passed over in the next. One task at a time may call `next_page` and `shorten`.

    Two ranges with a waiting row between them cannot become one. Beyond MAX_LEDGER_RANGES, and
    one for each row of the outbox, neighbouring ranges become one that only says how many of
    its numbers ended how (`compacted`): details are given up, no number is.
    """

    def __init__(
        self,
        database: Database,
        writer: Writer,
        counters: Counters,
        ledger: Ledger,
        waiting: Callable[[], int],
        uplink: str = "",
    ) -> None:
        self._uplink = uplink
        self._database = database
        self._writer = writer
        self._counters = counters
        self._ledger = ledger
        self._waiting = waiting
        self._handed_out: set[int] = set()
        self._position = START
        self._began = False
        self._shorten_from: Key | None = None
        self._shortest = 0

    @property
    def rows(self) -> int:
        """Ranges that the fleet has not heard of."""
        return max(0, self._ledger.rows_of[self._uplink] - len(self._ledger.reported_ids))

    @property
    def between_passes(self) -> bool:
        """Whether the next page is the first of a pass."""
        return self._position == START

    async def next_page(self, limit: int) -> list[LedgerRange] | None:
        """Return up to `limit` ranges; an empty page ends a pass.

        None while what was changed last is not on disk yet: ask again.
        """
        if not self._began:
            self._began = True
            self._ledger.close_ranges()
        if not self._settled:
            return None
        page = await self._read(self._position, limit)
        self._began = bool(page)
        self._position = key_of(page[-1]) if page else START
        free = self._free(page)
        self._handed_out.update(each.id for each in free)
        return free

    def reported(self, given: Iterable[LedgerRange]) -> None:
        """Have ranges deleted that the fleet has heard of."""
        given = list(given)
        self._handed_out.difference_update(each.id for each in given)
        self._ledger.reported(given)

    async def shorten(self) -> None:
        """Take a step towards a ledger within its bound, if it is beyond; call it often."""
        if self._shorten_from is None:
            bound = max(MAX_LEDGER_RANGES + self._waiting(), self._shortest)
            if self._ledger.rows_of[self._uplink] <= bound:
                return
            logger.warning("the ledger is compacted: it has %d ranges", self._ledger.rows)
            self._ledger.close_ranges()
            self._shorten_from = START
        if not self._settled:  # a page is read as it is on disk, not as the last step left it
            return
        page = await self._read(self._shorten_from, COARSE_PAGE)
        self._join(self._free(page))
        self._shorten_from = key_of(page[-1]) if page else None
        if not page:  # what cannot be joined must not be read through again at every call
            self._shortest = round(GROWTH * self._ledger.rows_of[self._uplink])

    @property
    def _settled(self) -> bool:
        return self._writer.committed >= self._ledger.closed_batch

    async def _read(self, position: Key, limit: int) -> list[LedgerRange]:
        row = (*position, self._uplink, self._ledger.closed_id, limit)
        return await self._database.reader.query(PAGE, row, ranges)

    def _free(self, page: list[LedgerRange]) -> list[LedgerRange]:
        reported = self._ledger.reported_ids
        return [
            each for each in page if each.id not in self._handed_out and each.id not in reported
        ]

    def _join(self, page: list[LedgerRange]) -> None:
        ends = {each.id: each.last for each in page}
        changed = [each for each in compacted(page) if each.last != ends.pop(each.id)]
        gone = [each for each in page if each.id in ends]
        if gone:
            self._ledger.replace(changed, gone)
            self._counters.add("tidegate/ledger/compacted", len(gone))

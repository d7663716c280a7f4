"""Reads the ledger for reports to the fleet, and compacts it when it grows too long."""

import logging
from collections.abc import Callable, Iterable

from gateway.counters import Counters
from gateway.storage.engine.database import Database
from gateway.storage.engine.writer import Writer
from gateway.storage.ledger.ledger import Ledger
from gateway.storage.ledger.range import PAGE, START, Key, LedgerRange, compacted, key_of, ranges

logger = logging.getLogger(__name__)

MAX_LEDGER_RANGES = 100_000
"""Ranges on disk, beside one for each row of the outbox, above which they are compacted."""

COMPACTION_PAGE = 4_000
"""Ranges that are compacted in one step."""

GROWTH = 1.1
"""The ledger must grow by this factor after a compaction before the next one."""


class LedgerPages:
    """Reads the ledger's ranges of an uplink in passes, ordered by epoch, stream and number.

    A pass returns each range that existed at its beginning, once; ranges that were returned and are
    not confirmed yet are skipped in the next pass. Only one task at a time may call `next_page` and
    `shorten`.

    Two ranges with a waiting row between them cannot be joined. Above MAX_LEDGER_RANGES plus one
    for each row of the outbox, adjacent ranges are merged (`compacted`). The merged range only says
    how many of its numbers had each outcome: details are lost, no number is.
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
        """Ranges that the fleet has not received."""
        return max(0, self._ledger.rows_of[self._uplink] - len(self._ledger.reported_ids))

    @property
    def between_passes(self) -> bool:
        """Whether the next page is the first of a pass."""
        return self._position == START

    async def next_page(self, limit: int) -> list[LedgerRange] | None:
        """Return up to `limit` ranges; an empty page ends a pass.

        None while the last change is not on disk yet: call again.
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
        """Have ranges deleted that the fleet has received."""
        given = list(given)
        self._handed_out.difference_update(each.id for each in given)
        self._ledger.reported(given)

    async def shorten(self) -> None:
        """Take a step towards a ledger within its bound, if it is above; call it often."""
        if self._shorten_from is None:
            bound = max(MAX_LEDGER_RANGES + self._waiting(), self._shortest)
            if self._ledger.rows_of[self._uplink] <= bound:
                return
            logger.warning("the ledger is compacted: it has %d ranges", self._ledger.rows)
            self._ledger.close_ranges()
            self._shorten_from = START
        # the last step's changes must be on disk before the next page is read
        if not self._settled:
            return
        page = await self._read(self._shorten_from, COMPACTION_PAGE)
        self._join(self._free(page))
        self._shorten_from = key_of(page[-1]) if page else None
        if not page:  # ranges that cannot be joined must not be read again at every call
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

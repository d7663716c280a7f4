"""The ledger: how each numbered message ended, in ranges, until the fleet has heard of it.

From the commit on that brings its batch to disk a number is in the outbox or in a range here,
never in both and never in neither. Numbers given after the last commit before a crash are in
neither: the next start says which number on disk was the last (docs/fleet.md).
"""

import asyncio
from collections import OrderedDict
from collections.abc import Iterable, Sequence

from gateway.counters import Counters
from gateway.storage.engine.database import Database
from gateway.storage.engine.ranges import ranges_of
from gateway.storage.engine.writer import Writer
from gateway.storage.ledger.gather import GatheredRanges
from gateway.storage.ledger.range import LedgerRange
from gateway.storage.ledger.starts import Starts
from gateway.storage.ledger.table import DELETE, INSERT, TOTALS, UPDATE, inserted, key_of, updated
from gateway.storage.outbox.fate import Fate
from gateway.storage.outbox.outbox_row import OutboxRow

LEDGER_SECONDS = 60.0
"""How long what is worth no commit waits for another's: filtered numbers, ranges that were told."""

MAX_OPEN_RANGES = 256
"""Ranges on disk that the number behind them may still extend; the oldest are closed."""

MAX_TOLD_RANGES = 1_000
"""Ranges that the fleet has heard of before they are deleted without waiting for a commit."""


class Ledger:
    """Ranges that wait for the fleet, `rows` of them on disk or gathered.

    What becomes of numbers is collapsed in memory and goes to disk with the next batch, whatever
    that is for, or after LEDGER_SECONDS. The end of a row of the outbox is in the batch of the
    row's removal, as `ended` is called in the turn that gathers it.
    """

    def __init__(
        self, database: Database, writer: Writer, counters: Counters, starts: Starts
    ) -> None:
        self.rows = 0
        self.starts = starts
        self.closed_id = 0
        self.closed_batch = 0
        self.told_ids: dict[int, int] = {}
        self._database = database
        self._writer = writer
        self._counters = counters
        self._gathered = GatheredRanges()
        self._numbered = False
        self._told: list[LedgerRange] = []
        self._open: OrderedDict[tuple[str, str, int], LedgerRange] = OrderedDict()
        self._last_id = 0
        self._batch = 0
        self._timer: asyncio.TimerHandle | None = None
        writer.before_batch.append(self.save)
        writer.on_committed.append(self._committed)

    async def load(self) -> None:
        """Learn what an earlier run left; call it once, before anything is noted."""
        query = self._database.reader.query
        self.rows, self._last_id = await query(TOTALS, (), lambda cursor: cursor.fetchone())
        self._counters.set("tidegate/ledger/ranges", self.rows)

    def taken(self, stream: str, number: int) -> None:
        """Note a number whose message goes to the outbox in the same batch."""
        self.starts.number(stream, number)
        self._numbered = True

    def filtered(self, stream: str, number: int, rule: str) -> None:
        """Note a number whose message `rule` was the last not to take."""
        self.taken(stream, number)
        self._note(self.starts.present.epoch, stream, number, number, Fate.FILTERED, rule)

    def ended(self, rows: Sequence[OutboxRow], fate: Fate, cause: str) -> None:
        """Note how rows of the outbox ended, in the turn that removes them (`Outbox.on_fate`)."""
        numbers: dict[tuple[str, str], list[int]] = {}
        for row in rows:
            numbers.setdefault((row.epoch, row.stream), []).append(row.seq)
        for (epoch, stream), each in numbers.items():
            for first, last in ranges_of(each):
                self._note(epoch, stream, first, last, fate, cause)

    def note(self, each: LedgerRange) -> None:
        """Note how a whole range of numbers ended."""
        self._gathered.put(each)
        self._counters.add(f"tidegate/ledger/{each.fate.value}", each.numbers)
        self._arm()

    def told(self, ranges: Iterable[LedgerRange]) -> None:
        """Delete, with some batch to come, ranges that the fleet has heard of."""
        for each in ranges:
            self._told.append(each)
            self.told_ids[each.id] = 0
        if len(self._told) >= MAX_TOLD_RANGES:
            self._write_now()
        self._arm()

    def save(self) -> None:
        """Gather everything noted; called before each batch closes, and when the gateway stops."""
        self._disarm()
        for each in self._gathered.take():
            self._put(each)
        if self._numbered:
            self._numbered = False
            self._batch = self.starts.save_last()
        for each in self._told:
            self.rows -= 1
            self._batch = self._writer.add(DELETE, key_of(each))
            self.told_ids[each.id] = self._batch
        self._told.clear()
        self._counters.set("tidegate/ledger/ranges", self.rows)

    def close_ranges(self) -> None:
        """Extend no range any more that is gathered by now.

        Once `closed_batch` is on disk, ranges up to `closed_id` are there as they will stay.
        """
        self._open.clear()
        self.closed_id, self.closed_batch = self._last_id, self._batch

    def replace(self, changed: Iterable[LedgerRange], gone: Iterable[LedgerRange]) -> None:
        """Gather changes to closed ranges that leave the numbers covered as they were."""
        for each in gone:
            self.rows -= 1
            self._batch = self._writer.add(DELETE, key_of(each))
        for each in changed:
            self._batch = self._writer.add(UPDATE, updated(each))
        self.closed_batch = self._batch
        self._writer.hand_over()

    def _note(self, epoch: str, stream: str, first: int, last: int, fate: Fate, cause: str) -> None:
        self._gathered.add(epoch, stream, first, last, fate, cause)
        self._counters.add(f"tidegate/ledger/{fate.value}", last - first + 1)
        if self._gathered.full:
            if self._writer.attempts.failing:
                self._counters.add("tidegate/ledger/compacted", self._gathered.make_coarse())
            else:
                self._write_now()
        elif self._timer is None:
            self._arm()

    def _put(self, each: LedgerRange) -> None:
        before = self._open.pop(key_of(each), None)
        if before is not None and before.fits(each):
            before.take_in(each)
            self._batch = self._writer.add(UPDATE, updated(before))
            each = before
        else:
            self.rows += 1
            self._last_id += 1
            each.id = self._last_id
            self._batch = self._writer.add(INSERT, inserted(each))
        self._open[each.epoch, each.stream, each.last + 1] = each
        if len(self._open) > MAX_OPEN_RANGES:
            self._open.popitem(last=False)

    def _arm(self) -> None:
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(LEDGER_SECONDS, self._write_now)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _write_now(self) -> None:
        self.save()
        self._writer.hand_over()

    def _committed(self, batch: int) -> None:
        for identifier in [known for known, when in self.told_ids.items() if 0 < when <= batch]:
            del self.told_ids[identifier]

"""The ledger: the outcome of each numbered message, in ranges, until the fleet has received it.

From the commit of its batch on, a number is in the outbox or in a range here, never in both and
never in neither. Numbers given after the last commit before a crash are in neither: the next start
reports the last number that was on disk (docs/understand/fleet-interface.md).
"""

import asyncio
import json
import sqlite3
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Sequence

from gateway.counters import Counters
from gateway.salvage.gaps import LostNumbers
from gateway.storage.engine.database import Database
from gateway.storage.engine.many_rows import ranges_of
from gateway.storage.engine.writer import Writer
from gateway.storage.ledger.range import (
    ADOPT,
    DELETE,
    FORGET,
    INSERT,
    TOTALS,
    UPDATE,
    Key,
    LedgerRange,
    collapsed,
    compacted,
    inserted,
    key_of,
    updated,
)
from gateway.storage.ledger.starts import Starts
from gateway.storage.outbox.row import (
    OutboxRow,
    Outcome,
)
from gateway.storage.outbox.uplinks import EVERY, Places, UplinkBits

LEDGER_SECONDS = 60.0
"""Seconds that changes worth no commit of their own wait for another: filtered numbers, reported
ranges."""

MAX_PENDING_RANGES = 10_000
"""Ranges in memory above which they are written, or compacted while the disk fails."""

MAX_OPEN_RANGES = 256
"""Ranges on disk that the next number may still extend; the oldest are closed."""

MAX_REPORTED_RANGES = 1_000
"""Reported ranges above which they are deleted without waiting for another commit."""

CAUSE = "a damaged database"
"""The reason for lost numbers."""

_KNOWN = (
    "SELECT first, last FROM ledger WHERE epoch = ? AND stream = ? AND last >= ? AND first <= ?"
    " AND uplink = ? ORDER BY first"
)
_FILTERED = Outcome.FILTERED  # CPython 3.11 takes 50 ns to find it
_COUNTER = {outcome: f"tidegate/ledger/{outcome.value}" for outcome in Outcome}


class PendingRanges:
    """Collapses numbers into ranges as they arrive, mostly in rising order.

    At `bound` ranges they must be written: MAX_PENDING_RANGES, or twice what could not be
    compacted.
    """

    def __init__(self) -> None:
        self.ranges: list[LedgerRange] = []
        self._newest: dict[tuple[str, str, str, Outcome], LedgerRange] = {}
        self.bound = MAX_PENDING_RANGES

    def add(self, each: LedgerRange) -> None:
        """Note the outcome of numbers, all with one reason, that mostly follow the last call's.

        The caller must not keep the range.
        """
        key = (each.uplink, each.epoch, each.stream, each.outcome)
        newest = self._newest.get(key)
        if newest is not None and newest.last == each.first - 1 and newest.fits(each):
            newest.extend(each)
            return
        self.ranges.append(each)
        self._newest[key] = each

    def add_number(
        self, uplink: str, epoch: str, stream: str, number: int, outcome: Outcome, reason: str
    ) -> bool:
        """Do the same for one number; return False if a range was made for it."""
        newest = self._newest.get((uplink, epoch, stream, outcome))
        if newest is not None and newest.last == number - 1:
            reasons = newest.reasons
            if reason in reasons and (len(reasons) == 1 or outcome is _FILTERED):
                newest.last = number  # as `fits` and `extend` do
                reasons[reason] += 1
                return True
        self.add(LedgerRange(epoch, stream, number, number, outcome, {reason: 1}, uplink=uplink))
        return False

    def remove_all(self) -> list[LedgerRange]:
        """Remove and return all ranges, in order."""
        ranges = collapsed(self.ranges)
        self.ranges = []
        self._newest.clear()
        self.bound = MAX_PENDING_RANGES
        return ranges

    def compact(self) -> int:
        """Merge what can be merged; return the number of ranges saved."""
        before = len(self.ranges)
        self.ranges = compacted(self.remove_all())
        # Twice the rest: with the same bound, each further number would compact everything again.
        self.bound = max(MAX_PENDING_RANGES, 2 * len(self.ranges))
        return before - len(self.ranges)


class Ledger:
    """Ranges that wait for the fleet, `rows` of them on disk or pending.

    With several `uplinks` each number has an outcome at each, and `rows_of` counts by name. Uplinks
    that are not in `reporting`, as bits, get no reports, and nothing is stored for them.

    Outcomes are collapsed in memory and written with the next batch, whatever it is for, or after
    LEDGER_SECONDS. The outcome of a row of the outbox is in the batch of the row's removal, as
    `ended` is called in the same turn.
    """

    def __init__(
        self,
        database: Database,
        writer: Writer,
        counters: Counters,
        starts: Starts,
        uplinks: Sequence[str] = (),
        reporting: int = EVERY,
    ) -> None:
        self._reporting = reporting
        self.rows_of: Counter[str] = Counter()
        self.starts = starts
        self._uplinks = UplinkBits(uplinks)
        self._first_name = uplinks[0] if uplinks else ""
        self.closed_id = 0
        self.closed_batch = 0
        self.reported_ids: dict[int, int] = {}
        self._database = database
        self._writer = writer
        self._counters = counters
        self._pending = PendingRanges()
        self._numbered = False
        self._reported: list[LedgerRange] = []
        self._open: OrderedDict[Key, LedgerRange] = OrderedDict()
        self._last_id = 0
        self._batch = 0
        self._timer: asyncio.TimerHandle | None = None
        writer.before_batch.append(self.save)
        writer.on_committed.append(self._committed)

    @property
    def uplinks(self) -> tuple[str, ...]:
        """The names of the uplinks, "" if there is only one."""
        return self._uplinks.names

    @property
    def rows(self) -> int:
        """The ranges of all uplinks."""
        return self.rows_of.total()

    async def load(self) -> None:
        """Load the state of an earlier run; call it once, before anything is noted.

        Ranges of an only uplink now belong to the first; so do those of a removed uplink.
        """
        totals = await self._totals()
        if any(uplink not in self.uplinks for uplink, _, _ in totals):
            first = (self.uplinks[0], self._first_name)
            names = json.dumps(self.uplinks)
            await self._database.writer.write([(ADOPT, [first]), (FORGET, [(names,)])])
            totals = await self._totals()
        self.rows_of.update({uplink: rows for uplink, rows, _ in totals})
        self._last_id = max((last for _, _, last in totals), default=0)
        self._counters.set("tidegate/ledger/ranges", self.rows)

    async def _totals(self) -> list[tuple[str, int, int]]:
        return await self._database.reader.query(TOTALS, (), sqlite3.Cursor.fetchall)

    def change(self, uplinks: Sequence[str], places: Places, reporting: int) -> None:
        """Know other uplinks from now on; what was for one that goes is forgotten."""
        # pending ranges have the present names of the uplinks
        self.save()
        before, self._uplinks = self._uplinks.names, UplinkBits(uplinks)
        self._reporting = reporting
        stay = {
            name: self.uplinks[place]
            for name, place in zip(before, places, strict=False)
            if place is not None
        }
        self._writer.add(FORGET, (json.dumps(list(stay)),))
        for name, now in stay.items():
            if name != now:
                self._writer.add(ADOPT, (now, name))
        self._batch = self._writer.batch
        counts = {stay[name]: rows for name, rows in self.rows_of.items() if name in stay}
        self.rows_of = Counter(counts)
        # these, too
        self._open.clear()
        self._writer.schedule_commit(0.0)
        self._writer.hand_over()

    def numbered(self, stream: str, number: int) -> None:
        """Note a number whose message is added to the outbox in the same batch."""
        self.starts.present.last[stream] = number
        self._numbered = True

    def filtered(self, stream: str, number: int, rule: str, uplinks: int = 1) -> None:
        """Note a number whose message was refused for these uplinks, last by `rule`."""
        self.numbered(stream, number)
        epoch = self.starts.present.epoch
        for index in self._uplinks.indexes(uplinks & self._reporting):
            name = self._uplinks.names[index]
            self._pending.add_number(name, epoch, stream, number, _FILTERED, rule)
            self._count(_FILTERED, 1)

    def ended(self, rows: Sequence[OutboxRow], outcome: Outcome, reason: str) -> None:
        """Note the outcome of rows, in the turn that removes them (`Outbox.on_outcome`)."""
        if len(rows) == 1 and not self._uplinks.several:  # the usual acknowledgement
            row = rows[0]
            if row.ending & self._reporting:
                add = self._pending.add_number
                if add("", row.epoch, row.stream, row.seq, outcome, reason):
                    self._counters.add(_COUNTER[outcome])  # the timer is set, the bound kept
                else:
                    self._count(outcome, 1)
            return
        numbers: dict[tuple[str, str, int], list[int]] = {}
        for row in rows:
            numbers.setdefault((row.epoch, row.stream, row.ending), []).append(row.seq)
        for (epoch, stream, ending), each in numbers.items():
            ranges = [(each[0], each[0])] if len(each) == 1 else ranges_of(each)
            for index in self._uplinks.indexes(ending & self._reporting):
                for first, last in ranges:
                    count = last - first + 1
                    ended = LedgerRange(epoch, stream, first, last, outcome, {reason: count})
                    ended.uplink = self._uplinks.names[index]
                    self._pending.add(ended)
                    self._count(outcome, count)

    def note(self, each: LedgerRange) -> None:
        """Note the outcome of a whole range of numbers."""
        self._pending.ranges.append(each)
        self._counters.add(f"tidegate/ledger/{each.outcome.value}", each.numbers)
        self._arm()

    def reported(self, ranges: Iterable[LedgerRange]) -> None:
        """Delete, in a later batch, ranges that the fleet has received."""
        for each in ranges:
            self._reported.append(each)
            self.reported_ids[each.id] = 0
        if len(self._reported) >= MAX_REPORTED_RANGES:
            self._write_now()
        self._arm()

    def save(self) -> None:
        """Write everything noted; called before each batch closes, and when the gateway stops."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._pending.ranges:
            for each in self._pending.remove_all():
                self._put(each)
        if self._numbered:
            self._numbered = False
            self._batch = self.starts.save_last()
        for each in self._reported:
            self.rows_of[each.uplink] -= 1
            self._batch = self._writer.add(DELETE, key_of(each))
            # until that commit, pages still read the row and must skip it
            self.reported_ids[each.id] = self._batch
        self._reported.clear()
        self._counters.values["tidegate/ledger/ranges"] = self.rows_of.total()

    def close_ranges(self) -> None:
        """Stop extending the ranges added up to now.

        Once `closed_batch` is on disk, ranges up to `closed_id` are there in their final form.
        """
        self._open.clear()
        self.closed_id, self.closed_batch = self._last_id, self._batch

    def replace(self, changed: Iterable[LedgerRange], gone: Iterable[LedgerRange]) -> None:
        """Write changes to closed ranges that leave the covered numbers the same."""
        for each in gone:
            self.rows_of[each.uplink] -= 1
            self._batch = self._writer.add(DELETE, key_of(each))
        for each in changed:
            self._batch = self._writer.add(UPDATE, updated(each))
        # the next page is read after this change is on disk
        self.closed_batch = self._batch
        self._writer.hand_over()

    def _count(self, outcome: Outcome, numbers: int) -> None:
        """Count numbers that were added to the pending ranges, which may be too many now."""
        pending = self._pending
        self._counters.add(_COUNTER[outcome], numbers)
        if len(pending.ranges) >= pending.bound:
            # a failing disk would let memory grow without bound
            if self._writer.attempts.failing:
                self._counters.add("tidegate/ledger/compacted", pending.compact())
            else:
                self._write_now()
        elif self._timer is None:
            self._arm()

    def _put(self, each: LedgerRange) -> None:
        # its key ends with the next number, which changes
        before = self._open.pop(key_of(each), None)
        if before is not None and before.fits(each):
            before.extend(each)
            self._batch = self._writer.add(UPDATE, updated(before))
            each = before
        else:
            self.rows_of[each.uplink] += 1
            self._last_id += 1
            each.id = self._last_id
            self._batch = self._writer.add(INSERT, inserted(each))
        self._open[each.epoch, each.stream, each.last + 1, each.uplink] = each
        if len(self._open) > MAX_OPEN_RANGES:
            self._open.popitem(last=False)

    def _arm(self) -> None:
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(LEDGER_SECONDS, self._write_now)

    def _write_now(self) -> None:
        self.save()
        self._writer.hand_over()

    def _committed(self, batch: int) -> None:
        if self.reported_ids:
            reported = self.reported_ids.items()
            # 0: the deletion is not in a batch yet
            for identifier in [each for each, when in reported if 0 < when <= batch]:
                del self.reported_ids[identifier]


async def note_lost(database: Database, ledger: Ledger, numbers: Iterable[LostNumbers]) -> int:
    """Note numbers as lost that the ledger does not know; return how many.

    Some may have ended before, and been reported: the fleet keeps the first report, and a message
    that arrived has arrived (docs/understand/fleet-interface.md). A range without a known end
    ends with the last number that was on disk; it is skipped if that is unknown, too.
    """
    count = 0
    for each in numbers:
        last = each.last or ledger.starts.last_of(each.epoch).get(each.stream, 0)
        for uplink in ledger.uplinks:
            row = (each.epoch, each.stream, each.first, last, uplink)
            known = await database.reader.query(_KNOWN, row, lambda cursor: cursor.fetchall())
            for first, to in _between(each.first, last, known):
                size = to - first + 1
                span = (each.epoch, each.stream, first, to)
                ledger.note(LedgerRange(*span, Outcome.LOST, {CAUSE: size}, uplink=uplink))
                count += size
    return count


def _between(first: int, last: int, known: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the parts of `first` to `last` that are in none of the known, rising ranges."""
    for begins, ends in known:
        if begins > first:
            yield first, begins - 1
        first = max(first, ends + 1)
    if first <= last:
        yield first, last

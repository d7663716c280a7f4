"""What a damaged database took from the outbox, for the ledger."""

from collections.abc import Iterable, Iterator

from gateway.salvage.gaps import LostNumbers
from gateway.storage.engine.database import Database
from gateway.storage.ledger.ledger import Ledger
from gateway.storage.ledger.range import LedgerRange
from gateway.storage.outbox.outcome import Outcome

CAUSE = "a damaged database"

_KNOWN = (
    "SELECT first, last FROM ledger WHERE epoch = ? AND stream = ? AND last >= ? AND first <= ?"
    " AND uplink = ? ORDER BY first"
)


async def note_lost(database: Database, ledger: Ledger, numbers: Iterable[LostNumbers]) -> int:
    """Note numbers as lost of which the ledger knows nothing else; return how many.

    Some may have ended before, and been reported: the fleet keeps the first word, and a message
    that arrived has arrived (docs/fleet.md). A range without a known end ends with the last
    number that was on disk, and is passed over where that is not known either.
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
    """Yield the ranges of `first` to `last` that are in none of the known ones, which rise."""
    for begins, ends in known:
        if begins > first:
            yield first, begins - 1
        first = max(first, ends + 1)
    if first <= last:
        yield first, last

"""What gateways say of themselves, ledger and clock: from landing files into their tables."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from pipeline.batches.plan import Batch
from pipeline.clock.record import ClockError, read_clock
from pipeline.landing.landing_file import RAW_BYTES_MAX
from pipeline.landing.listing import kind
from pipeline.landing.reports import Report, reports
from pipeline.ledger.entry import Entry, EntryError, read_entry
from pipeline.ledger.files import reporter_of
from pipeline.place import Place
from pipeline.records import reasons
from pipeline.settings import Settings
from pipeline.tables import delta
from pipeline.tables.columns import CLOCKS, LEDGER

Row = dict[str, object]


@dataclass(frozen=True)
class Noted:
    """What a batch's ledgers and clock records concern."""

    streams: tuple[tuple[str, str, str], ...]
    """Gateway, epoch and stream of each ledger entry."""
    epochs: tuple[tuple[str, str], ...]
    """Gateway and epoch of each clock record."""
    faults: list[Row]
    """Rows for the quarantine: lines that are neither."""


def store_reports(settings: Settings, batch: Batch) -> Noted:
    """Add the rows of a batch's ledger and clock files to the tables `ledger` and `clocks`."""
    ledger: list[Row] = []
    clocks: list[Row] = []
    faults: list[Row] = []
    for name, mark in batch.files.items():
        content = kind(name)
        reported = datetime.fromtimestamp(mark.mtime / 1e9, UTC)
        for line in _lines(settings.landing, name) if content != "records" else ():
            where: Row = {"gateway_id": line.gateway, "landing_file": name, "line": line.line}
            try:
                if content == "ledger":
                    entry = read_entry(line.content)
                    by = {"reporter": reporter_of(name) or entry.epoch, "reported": reported}
                    ledger += [where | by | row for row in _ledger_rows(entry)]
                else:
                    clocks.append(where | _clock_row(line.content))
            except (EntryError, ClockError) as error:
                raw = line.content[:RAW_BYTES_MAX]
                reason = reasons.LEDGER_INVALID if content == "ledger" else reasons.CLOCK_INVALID
                faults.append(where | {"reason": reason, "detail": str(error), "raw": raw})
    number: Row = {"batch": batch.number}
    delta.append(settings.tables / "ledger", LEDGER, [row | number for row in ledger], batch.number)
    delta.append(settings.tables / "clocks", CLOCKS, [row | number for row in clocks], batch.number)
    return Noted(
        tuple(sorted({(str(r["gateway_id"]), str(r["epoch"]), str(r["stream"])) for r in ledger})),
        tuple(sorted({(str(row["gateway_id"]), str(row["epoch"])) for row in clocks})),
        [row | number for row in faults],
    )


def _lines(landing: Place, name: str) -> Iterator[Report]:
    with landing.open(name) as file:
        yield from reports(file, name)


def _ledger_rows(entry: Entry) -> Iterator[Row]:
    same: Row = {"epoch": entry.epoch, "start": entry.start, "stream": entry.stream}
    yield same
    for each in entry.ranges:
        yield same | each._asdict()
    if entry.previous is not None:
        epoch, numbers = entry.previous
        for stream, last in numbers.items():
            yield {"epoch": epoch, "stream": stream, "last": last}
        if not numbers:  # that it has ended is to be known all the same
            yield {"epoch": epoch, "stream": entry.stream, "last": 0}


def _clock_row(line: bytes) -> Row:
    row: Row = read_clock(line)._asdict()
    return row | {"numbers": json.dumps(row["numbers"])}

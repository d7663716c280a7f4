"""The ledger's files of a landing folder, in the order in which gateways wrote them."""

from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from pipeline.landing.reports import COLLECTED, reports
from pipeline.ledger.entry import Entry, EntryError, read_entry


class LedgerLine(NamedTuple):
    """An entry, whose it is and where it stands."""

    gateway_id: str
    reporter: str
    """The epoch of the start that reported it; an entry may be about an earlier one."""
    file_number: int
    line: int
    entry: Entry
    reporter_start: int | None = None
    """Which start `reporter` was, if that is known from elsewhere."""


class Fault(NamedTuple):
    """A line that is no entry."""

    file: str
    line: int
    detail: str


def ledger_files(landing: Path) -> list[str]:
    """Return the ledger's files as paths below the landing folder."""
    found = landing.glob("[!._]*/ledger/[!._]*.jsonl")
    return sorted(path.relative_to(landing).as_posix() for path in found if path.is_file())


def read_ledger(landing: Path, files: Iterable[str]) -> Iterator[LedgerLine | Fault]:
    """Yield what each line of the files says; blank lines are passed over."""
    for name in files:
        with (landing / name).open("rb") as opened:
            for report in reports(opened, name):
                try:
                    entry = read_entry(report.content)
                except EntryError as error:
                    yield Fault(name, report.line, str(error))
                    continue
                reporter = reporter_of(name) or entry.epoch
                yield LedgerLine(report.gateway, reporter, order_of(name), report.line, entry)


def reporter_of(name: str) -> str | None:
    """Return the epoch of the start that wrote a ledger's file; a collector's file has none."""
    epoch = PurePosixPath(name).name.partition(".")[0]
    return None if epoch == COLLECTED else epoch


def order_of(name: str) -> int:
    """Return the number of a ledger's file among those of its writer, 0 if it has none."""
    number = PurePosixPath(name).name.removesuffix(".jsonl").partition(".")[2].partition("-")[0]
    known = number.isascii() and number.isdecimal() and len(number) < 19
    return int(number) if known else 0


def in_order(lines: Iterable[LedgerLine]) -> list[LedgerLine]:
    """Return the entries as they were written: by start, number of the file, and line.

    Which start a reporter was is what entries of the same epoch say. A start that nobody numbers
    stands behind the others.
    """
    listed = list(lines)
    starts = {
        (each.gateway_id, each.entry.epoch): each.entry.start
        for each in listed
        if each.entry.start is not None
    }
    unknown = max(starts.values(), default=0) + 1

    def place(each: LedgerLine) -> tuple[str, int, str, int, int]:
        start = each.reporter_start or starts.get((each.gateway_id, each.reporter))
        return each.gateway_id, start or unknown, each.reporter, each.file_number, each.line

    return sorted(listed, key=place)

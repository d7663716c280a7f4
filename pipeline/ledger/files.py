"""The ledger's files of a landing folder, in the order in which gateways wrote them."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from pipeline.landing.lines import read_lines
from pipeline.ledger.entry import Entry, EntryError, read_entry


class LedgerLine(NamedTuple):
    """An entry, whose it is and where it stands."""

    gateway_id: str
    file_epoch: str
    """The start of the gateway that wrote the file; an entry may tell of an earlier one."""
    file_number: int
    line: int
    entry: Entry
    file_start: int | None = None
    """Which start `file_epoch` was, if that is known from elsewhere."""


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
        gateway, epoch, order = place_of(name)
        with (landing / name).open("rb") as opened:
            for line in read_lines(opened):
                if not line.content.strip():
                    continue
                try:
                    entry = read_entry(line.content)
                except EntryError as error:
                    yield Fault(name, line.number, str(error))
                    continue
                yield LedgerLine(gateway, epoch, order, line.number, entry)


def place_of(name: str) -> tuple[str, str, int]:
    """Return gateway, epoch and number of a ledger's file; the number is 0 if it has none."""
    gateway, _, file = name.partition("/ledger/")
    epoch, _, number = file.removesuffix(".jsonl").partition(".")
    known = number.isascii() and number.isdecimal() and len(number) < 19
    return gateway, epoch, int(number) if known else 0


def in_order(lines: Iterable[LedgerLine]) -> list[LedgerLine]:
    """Return the entries as they were written: by start, number of the file, and line.

    A file belongs to the start of its name; which start that was is what entries of the same
    epoch say. A start that nobody numbers stands behind the others.
    """
    listed = list(lines)
    starts = {
        (each.gateway_id, each.entry.epoch): each.entry.start
        for each in listed
        if each.entry.start is not None
    }
    unknown = max(starts.values(), default=0) + 1

    def place(each: LedgerLine) -> tuple[str, int, str, int, int]:
        start = each.file_start or starts.get((each.gateway_id, each.file_epoch))
        return each.gateway_id, start or unknown, each.file_epoch, each.file_number, each.line

    return sorted(listed, key=place)

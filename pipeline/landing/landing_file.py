"""A landing file as rows: its records, and the reasons where there is none.

The rows have the quarantine's columns; the reason of a row for bronze is None.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

from pipeline.landing.lines import LINE_BYTES_MAX, Line, read_lines
from pipeline.records import reasons
from pipeline.records.record import NOTHING, Fault, Values, read_record

RAW_BYTES_MAX = 64 * 1024
"""Bytes of a line that the quarantine keeps; the landing file has the rest."""

Row = tuple[object, ...]
"""The values of columns.QUARANTINE."""

_NAME = re.compile(
    r"(?P<gateway_id>[A-Za-z0-9][A-Za-z0-9_-]{0,63})/"
    r"(?P<epoch>[0-9a-fA-F]{10})\.(?P<stream>[A-Za-z0-9_-]{1,16})\."
    r"(?P<first>[0-9]{1,19})-(?P<last>[0-9]{1,19})\.(?P<lines>[0-9]{1,19})\.jsonl"
)


_COLLECTED = re.compile(r"[0-9]{8}/.*\.(?P<lines>[0-9]{1,19})\.jsonl", re.DOTALL)
"""A collector's file of what is no record: its name says how many lines there are."""


class LandingName(NamedTuple):
    """What `<gateway_id>/<epoch>.<stream>.<first>-<last>.<lines>.jsonl` says."""

    gateway_id: str
    epoch: str
    stream: str
    first: int
    last: int
    lines: int


@dataclass
class _Tally:
    """What is known of a file once all of its lines were read."""

    whole: int = 0
    half: Line | None = None
    strangers: int = 0
    stranger: object = None
    unnamed: int = 0
    """Records whose epoch, stream or seq the file's name does not cover."""
    first_unnamed: str = ""


def parse_name(name: str) -> LandingName | None:
    """Return what the path below the landing folder says, None when it has another form."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    gateway_id, epoch, stream, first, last, lines = found.groups()
    return LandingName(gateway_id, epoch, stream, int(first), int(last), int(lines))


def lines_of(name: str) -> int:
    """Return how many lines a file has by its name; 0 where that does not say it."""
    found = _NAME.fullmatch(name) or _COLLECTED.fullmatch(name)
    return 0 if found is None else int(found["lines"])


def read_landing_file(file: BinaryIO, name: str, limit: int = LINE_BYTES_MAX) -> Iterator[Row]:
    """Yield a row for each whole line of the file and then one for each fault of the file.

    `name` is the file's path below the landing folder. Blank lines give no row and do not
    count. A last line without a newline is whole when it is a JSON object, since no beginning
    of an object is one; else it is half a line, which the row `truncated` carries.
    """
    tally = _Tally()
    folder = "" if _COLLECTED.fullmatch(name) else name.rpartition("/")[0]
    named = parse_name(name)
    for line in read_lines(file, limit):
        if line.content and not line.content.isspace():
            yield from _line_row(line, name, folder, tally, named)
    yield from _file_rows(name, named, tally)


def _line_row(
    line: Line, name: str, folder: str, tally: _Tally, named: LandingName | None
) -> Iterator[Row]:
    values, fault = _read(line)
    if not line.ended and fault is not None and values is NOTHING:
        tally.half = line
        return
    tally.whole += 1
    if fault is not None:
        yield (*values, name, line.number, *fault, line.content[:RAW_BYTES_MAX])
        return
    if folder and values[0] != folder:
        tally.stranger = tally.stranger or values[0]
        tally.strangers += 1
    elif named is not None and not _covers(named, values):
        tally.first_unnamed = tally.first_unnamed or f"{values[1]}.{values[2]}.{values[3]}"
        tally.unnamed += 1
    yield (*values, name, line.number, None, None, None)


def _covers(named: LandingName, values: Values) -> bool:
    seq = values[3]
    return (
        values[1:3] == (named.epoch, named.stream)
        and isinstance(seq, int)
        and named.first <= seq <= named.last
    )


def _read(line: Line) -> tuple[Values, Fault | None]:
    if line.too_long:
        detail = f"the line is longer than {len(line.content)} bytes"
        return NOTHING, Fault(reasons.LINE_TOO_LONG, detail)
    return read_record(line.content)


def _file_rows(name: str, named: LandingName | None, tally: _Tally) -> Iterator[Row]:
    known = (named.gateway_id, named.epoch, named.stream) if named else ()
    values = (*known, *NOTHING[len(known) :])
    collected = _COLLECTED.fullmatch(name)
    expected = int(collected["lines"]) if collected else named.lines if named else None
    for fault in _file_faults(expected, tally):
        half = tally.half if fault.reason == reasons.TRUNCATED else None
        place = (half.number, half.content[:RAW_BYTES_MAX]) if half else (None, None)
        yield (*values, name, place[0], *fault, place[1])


def _file_faults(expected: int | None, tally: _Tally) -> Iterator[Fault]:
    counted = f"{tally.whole} whole lines, its name says {expected}"
    if expected is None:
        form = "<gateway_id>/<epoch>.<stream>.<first>-<last>.<lines>.jsonl"
        yield Fault(reasons.FILE_NAME, f"not {form}: no telling whether lines are missing")
    if tally.half is not None or (expected is not None and tally.whole < expected):
        yield Fault(reasons.TRUNCATED, counted)
    elif expected is not None and tally.whole > expected:
        yield Fault(reasons.SURPLUS_LINES, counted)
    if tally.strangers:
        detail = f"{tally.strangers} records of other gateways, the first of {tally.stranger}"
        yield Fault(reasons.FOLDER_MISMATCH, detail)
    if tally.unnamed and (expected is None or tally.whole <= expected):
        detail = (
            f"{tally.unnamed} records that its name leaves out, the first {tally.first_unnamed}"
        )
        yield Fault(reasons.NAME_MISMATCH, detail)

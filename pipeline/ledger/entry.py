"""A line of a ledger: strictly docs/understand/schemas/ledger-entry.schema.json."""

import re
from typing import NamedTuple

from pipeline.records.strict_json import NotJsonError, parse

OUTCOMES = ("delivered", "filtered", "expired", "evicted", "rejected", "lost")
NUMBER_MAX = 2**63 - 1

_EPOCH = re.compile("[0-9A-Fa-f]{10}")
_STREAM = re.compile("[A-Za-z0-9_-]{1,16}")


class EntryError(ValueError):
    """A line is no ledger entry; the message says why."""


class Range(NamedTuple):
    """How the numbers `first` to `last` ended."""

    first: int
    last: int
    outcome: str
    cause: str


class Entry(NamedTuple):
    """What one line says."""

    epoch: str
    start: int | None
    """Which start of the gateway gave the epoch."""
    stream: str
    ranges: tuple[Range, ...]
    previous: tuple[str, dict[str, int]] | None
    """The epoch before and the last number of each of its streams."""


def read_entry(line: bytes) -> Entry:
    """Return what a line says; raises EntryError."""
    try:
        value = parse(line)
    except NotJsonError as error:
        raise EntryError(str(error)) from None
    if not isinstance(value, dict):
        raise EntryError("not an object")
    missing = {"epoch", "start", "previous", "stream", "ranges"} - value.keys()
    if missing:
        raise EntryError(f"{min(missing)} is missing")
    start = value["start"]
    return Entry(
        _matching("epoch", _EPOCH, value["epoch"]),
        None if start is None else _number("start", start),
        _matching("stream", _STREAM, value["stream"]),
        tuple(_range(each) for each in _list("ranges", value["ranges"])),
        _previous(value["previous"]),
    )


def counts_of(cause: str, numbers: int) -> dict[str, int] | None:
    """Return the numbers by outcome of a range of several, `filtered*90 evicted*10`.

    None for any other cause, and where the counts do not add up to the range's `numbers`.
    """
    pairs = [word.rpartition("*") for word in cause.split(" ")]
    if not all(outcome in OUTCOMES and re.fullmatch("[0-9]{1,19}", n) for outcome, _, n in pairs):
        return None
    counts = dict.fromkeys((outcome for outcome, _, _ in pairs), 0)
    for outcome, _, count in pairs:
        counts[outcome] += int(count)
    return counts if sum(counts.values()) == numbers else None


def _range(value: object) -> Range:
    match value:
        case [first, last, str(outcome), str(cause)] if outcome in OUTCOMES:
            found = Range(_number("range", first), _number("range", last), outcome, cause)
            if found.first <= found.last:
                return found
    raise EntryError("a range is not [first, last, outcome, reason]")


def _previous(value: object) -> tuple[str, dict[str, int]] | None:
    match value:
        case None:
            return None
        case {"epoch": epoch, "last": dict(last)}:
            numbers = {
                _matching("stream", _STREAM, stream): _number("last", number)
                for stream, number in last.items()
            }
            return _matching("epoch", _EPOCH, epoch), numbers
    raise EntryError("previous is not an epoch and its last numbers")


def _list(name: str, value: object) -> list[object]:
    if not isinstance(value, list):
        raise EntryError(f"{name} is not a list")
    return value


def _matching(name: str, pattern: re.Pattern[str], value: object) -> str:
    if not isinstance(value, str) or pattern.fullmatch(value) is None:
        raise EntryError(f"{name} has another form")
    return value


def _number(name: str, value: object) -> int:
    if type(value) is not int or not 1 <= value <= NUMBER_MAX:
        raise EntryError(f"{name} is not a number from 1 to {NUMBER_MAX}")
    return value

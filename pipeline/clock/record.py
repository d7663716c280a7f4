"""One clock record, by docs/understand/schemas/clock-record.schema.json and without leniency."""

import re
from typing import NamedTuple

from pipeline.records.strict_json import NotJsonError, parse

INT64 = range(-(2**63), 2**63)

_EPOCH = re.compile("[0-9A-Fa-f]{10}")
_STREAM = re.compile("[A-Za-z0-9_-]{1,16}")
_NAMES = ("epoch", "offset_ms", "uncertainty_ms", "from", "to", "numbers", "boot", "uptime_ms")


class ClockError(ValueError):
    """A line is no clock record; the message says why."""


class ClockRecord(NamedTuple):
    """What is known of the clock in one span of an epoch; times in ms by that clock."""

    epoch: str
    offset_ms: int
    uncertainty_ms: int | None
    begins: int
    ends: int | None
    numbers: dict[str, tuple[int, int | None]]
    boot: str
    uptime_ms: int


def read_clock(line: bytes) -> ClockRecord:
    """Return what a line says; raises ClockError."""
    try:
        value = parse(line)
    except NotJsonError as error:
        raise ClockError(str(error)) from None
    if not isinstance(value, dict):
        raise ClockError("not an object")
    missing = [name for name in _NAMES if name not in value]
    if missing:
        raise ClockError(f"{missing[0]} is missing")
    epoch, boot = value["epoch"], value["boot"]
    if not isinstance(epoch, str) or _EPOCH.fullmatch(epoch) is None:
        raise ClockError("epoch has another form")
    if not isinstance(boot, str):
        raise ClockError("boot is not text")
    return ClockRecord(
        epoch,
        _integer("offset_ms", value["offset_ms"]),
        _optional("uncertainty_ms", value["uncertainty_ms"], 0),
        _integer("from", value["from"]),
        _optional("to", value["to"]),
        numbers_of(value["numbers"]),
        boot,
        _integer("uptime_ms", value["uptime_ms"]),
    )


def numbers_of(value: object) -> dict[str, tuple[int, int | None]]:
    """Return the first and last number by stream; raises ClockError."""
    if not isinstance(value, dict):
        raise ClockError("numbers is not an object")
    found = {}
    for stream, pair in value.items():
        if _STREAM.fullmatch(stream) is None or not isinstance(pair, list) or len(pair) != 2:
            raise ClockError("numbers has something but [first, last] by stream")
        found[stream] = (_integer("number", pair[0], 1), _optional("number", pair[1], 1))
    return found


def _optional(name: str, value: object, low: int = INT64.start) -> int | None:
    return None if value is None else _integer(name, value, low)


def _integer(name: str, value: object, low: int = INT64.start) -> int:
    if type(value) is not int or value < low or value not in INT64:
        raise ClockError(f"{name} is not an integer of 64 bits from {low}")
    return value

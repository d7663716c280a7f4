"""What one line or telegram says: its readings, and of which node and time."""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeVar

from gateway.bridges.readings.reading import Value
from gateway.bridges.readings.registry import known_unit


class NoReadingError(ValueError):
    """A line in which there are no readings, such as what a board prints when it starts."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Named values for the reading map, or with `reading` (quantity, value, unit) as they are.

    `node` and `time` (milliseconds since 1970) are None where the line does not say, `instance` is
    empty.
    """

    fields: dict[str, object]
    node: str | None = None
    time: int | None = None
    reading: tuple[str, Value, str | None] | None = None
    units: Mapping[str, str] = field(default_factory=dict)
    """Units of `fields`, as far as the format says them; an empty one says that there is none."""
    instance: str = ""


Parse = Callable[[bytes], Sample]
"""Raises NoReadingError for a line that is none, RefusedReadingError for a bad one."""


WHOLE = re.compile("[-+]?[0-9]{1,300}")
DECIMAL = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?", re.ASCII | re.IGNORECASE)
NO_NUMBER = re.compile(r"[-+]?(?:nan|inf|infinity|ovf)(?:\(\w*\))?", re.IGNORECASE)
"""What boards print for a number that is none."""


def number_or_text(text: str, decimal: str = ".") -> int | float | str:
    """Return what a cell says: a number where it is one; `decimal` stands before its fraction."""
    if WHOLE.fullmatch(text):
        return int(text)
    number = text if "." in text else text.replace(decimal, ".")
    if DECIMAL.fullmatch(number):
        return float(number)
    return math.nan if NO_NUMBER.fullmatch(text) else text


Name = TypeVar("Name")

WITH_UNIT = re.compile(r"([-+]?[\d.,]+)\s*([^\s\d.,].*)")


def measured(cells: Mapping[Name, str], decimal: str) -> tuple[dict[Name, object], dict[Name, str]]:
    """Return the values of named cells, and the units of those such as `21.5 °C`."""
    values: dict[Name, object] = {}
    units: dict[Name, str] = {}
    for name, cell in cells.items():
        values[name] = number_or_text(cell, decimal)
        match = WITH_UNIT.fullmatch(cell)
        number = number_or_text(match[1], decimal) if match is not None else ""
        unit = known_unit(match[2].strip()) if match is not None else None
        if unit is not None and not isinstance(number, str):
            values[name], units[name] = number, unit
    return values, units


class Measured(NamedTuple):
    """A value of a telegram."""

    quantity: str
    value: Value
    unit: str | None = None
    instance: str = ""


@dataclass(frozen=True, slots=True)
class Telegram:
    """Values that were taken together; `time` is milliseconds since 1970, None if it says none."""

    values: tuple[Measured, ...]
    time: int | None = None


class TelegramDecoder(Protocol):
    """Finds telegrams; what fails its check is counted in `failed`, and none of it is given."""

    failed: int
    skipped: int
    """Bytes that belong to no telegram."""

    def feed(self, data: bytes) -> Iterable[Telegram]:
        """Give the telegrams that `data` ends."""

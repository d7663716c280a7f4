"""The readings of one line or telegram, with their node and time."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeVar

from gateway.bridges.readings.reading import Value
from gateway.bridges.readings.written import number_or_text, number_with_unit


class NoReadingError(ValueError):
    """A line without readings, such as a board's text at its start."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Named values for the reading map, or with `reading` a finished (quantity, value, unit).

    `node` and `time` (milliseconds since 1970) are None, and `instance` empty, if not given.
    """

    fields: dict[str, object]
    node: str | None = None
    time: int | None = None
    reading: tuple[str, Value, str | None] | None = None
    units: Mapping[str, str] = field(default_factory=dict)
    """Units of `fields`, where the format gives them; an empty one means that there is none."""
    instance: str = ""


Parse = Callable[[bytes], Sample]
"""Raises NoReadingError for a line without readings, RefusedReadingError for a bad one."""


Name = TypeVar("Name")


def measured(cells: Mapping[Name, str], decimal: str) -> tuple[dict[Name, object], dict[Name, str]]:
    """Return the values of named cells, and the units of those such as `21.5 °C`."""
    values: dict[Name, object] = {}
    units: dict[Name, str] = {}
    for name, cell in cells.items():
        with_unit = number_with_unit(cell, decimal)
        if with_unit is None:
            values[name] = number_or_text(cell, decimal)
        else:
            values[name], units[name] = with_unit
    return values, units


class Measured(NamedTuple):
    """A value of a telegram."""

    quantity: str
    value: Value
    unit: str | None = None
    instance: str = ""


@dataclass(frozen=True, slots=True)
class Telegram:
    """Values measured together; `time` is milliseconds since 1970, None if it has none."""

    values: tuple[Measured, ...]
    time: int | None = None


class TelegramDecoder(Protocol):
    """Finds telegrams; those that fail their check are counted in `failed` and dropped."""

    failed: int
    skipped: int
    """Bytes that belong to no telegram."""

    def feed(self, data: bytes) -> Iterable[Telegram]:
        """Yield the telegrams that `data` completes."""

"""What one line or telegram says: its readings, and of which node and time."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeVar

from gateway.bridges.readings.reading import Value
from gateway.bridges.readings.written import number_or_text, number_with_unit


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

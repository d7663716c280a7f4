"""What one line of text says: its readings, and of which node and time."""

from collections.abc import Callable
from dataclasses import dataclass

from gateway.bridges.readings.reading import Value


class NoReadingError(ValueError):
    """A line in which there are no readings, such as what a board prints when it starts."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Named values for the reading map, or with `readings` (quantity, value, unit) as they are.

    `node` and `time` (milliseconds since 1970) are None where the line does not say.
    """

    fields: dict[str, object]
    node: str | None = None
    time: int | None = None
    reading: tuple[str, Value, str | None] | None = None


Parse = Callable[[bytes], Sample]
"""Raises NoReadingError for a line that is none, RefusedReadingError for a bad one."""


def number_or_text(text: str) -> int | float | str:
    """Return what a cell says: a number where it is one."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text

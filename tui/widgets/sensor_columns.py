"""How wide each column of the sensor table is, and what stands in a sensor's row."""

from typing import NamedTuple

from tui.sensors import Sensor
from tui.text import UNKNOWN, fit, span, sparkline

MARK_WIDTH = 3
"""cells at the left: the cursor, the mark and a space"""
FRESH = 1.0
"""seconds for which a new reading is marked"""


class Columns(NamedTuple):
    """Widths in cells; a trend of 0 is left out."""

    name: int
    value: int
    unit: int
    age: int
    trend: int


class Row(NamedTuple):
    """The cells of a row, each filled to its column's width."""

    mark: str
    name: str
    value: str
    unit: str
    age: str
    trend: str


def columns_for(width: int) -> Columns:
    """Return the columns for a table of `width` cells."""
    if width < 44:
        value, unit, age, trend = 8, 3, 7, 0
    elif width < 66:
        value, unit, age, trend = 9, 4, 7, 6
    else:
        value, unit, age, trend = 12, 6, 8, min(32, width // 5)
    gaps = 3 + (1 if trend else 0)
    return Columns(
        max(4, width - MARK_WIDTH - value - unit - age - trend - gaps), value, unit, age, trend
    )


def heading(columns: Columns) -> Row:
    """Return the names of the columns."""
    return Row(
        " ",
        fit("sensor", columns.name),
        fit("value", columns.value, right=True),
        fit("unit" if columns.unit >= 4 else "", columns.unit),
        fit("age", columns.age, right=True),
        fit("trend", columns.trend),
    )


def row_of(sensor: Sensor, columns: Columns, now: float, *, late: bool) -> Row:
    """Return a sensor's row; its mark is `!` when it is late, `•` when it was just heard."""
    age = sensor.age(now)
    fresh = sensor.heard is not None and now - sensor.heard < FRESH
    mark = "!" if late else "•" if fresh else " "
    return Row(
        mark,
        fit(sensor.shown_name, columns.name),
        fit(sensor.reading.text, columns.value, right=True),
        fit(sensor.reading.unit, columns.unit),
        fit(UNKNOWN if age is None else span(age), columns.age, right=True),
        fit(sparkline(sensor.recent, columns.trend), columns.trend),
    )

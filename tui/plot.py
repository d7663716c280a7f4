"""Plots with axes, drawn in braille: two by four dots a cell."""

import math
from collections.abc import Sequence

from tui.line import MUTED, Line, line
from tui.text import time_of_day

DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
"""bits of a braille character, by column and by row from above"""
BRAILLE = 0x2800
LABEL = 6
"""cells of the numbers beside the axis"""

Values = Sequence[float | None]


def short(number: float) -> str:
    """Return a number in at most five cells: `0.25`, `12.4`, `812`, `4.9k`, `1.2M`."""
    size = abs(number)
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if size >= 0.9995 * limit:
            scaled = number / limit
            return f"{scaled:.0f}{unit}" if abs(scaled) >= 9.95 else f"{scaled:.1f}{unit}"
    if size >= 99.95 or number == int(number):
        return f"{number:.0f}"
    return f"{number:.1f}" if size >= 9.995 else f"{number:.2g}"


def resampled(values: Values, count: int) -> list[float | None]:
    """Return so many means of neighbours, or the values themselves where there are too few."""
    if count <= 0:
        return []
    if len(values) <= count:
        return [None] * (count - len(values)) + list(values)
    result: list[float | None] = []
    for index in range(count):
        part = values[index * len(values) // count : (index + 1) * len(values) // count]
        known = [value for value in part if value is not None]
        result.append(sum(known) / len(known) if known else None)
    return result


def stretched(values: Values, count: int) -> list[float | None]:
    """Return at least so many values, each repeated where there are too few."""
    if not values or len(values) >= count:
        return list(values)
    return [values[index * len(values) // count] for index in range(count)]


def scale(values: Values, *, zero: bool) -> tuple[float, float]:
    """Return the lowest and highest number of an axis that holds the values."""
    known = [value for value in values if value is not None and math.isfinite(value)]
    if not known:
        return 0.0, 1.0
    low, high = min(known), max(known)
    if zero and low >= 0:
        low = 0.0
    if high - low <= 1e-9 * max(abs(high), 1.0):
        high, low = (high + 1.0, low) if zero else (high + 0.5, low - 0.5)
    step = _step((high - low) / 2)
    return math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step


def _step(rough: float) -> float:
    """Return 1, 2 or 5 times a power of ten that is about a fifth of this."""
    power = 10.0 ** math.floor(math.log10(rough / 2.5))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough / 2.5)


def course(values: Values, cells: int, rows: int, low: float, high: float) -> list[str]:
    """Return rows of braille with a line through the values; a gap where one is not known."""
    grid = [[0] * cells for _ in range(rows)]
    top = rows * 4 - 1
    before: int | None = None
    for column, value in enumerate(resampled(values, cells * 2)):
        if value is None or not math.isfinite(value):
            before = None
            continue
        height = round((value - low) / (high - low) * top) if high > low else 0
        height = min(top, max(0, height))
        start = height if before is None else before
        for each in range(min(start, height), max(start, height) + 1):
            dot = top - each
            grid[dot // 4][column // 2] |= DOTS[column % 2][dot % 4]
        before = height
    return ["".join(chr(BRAILLE + bits) if bits else " " for bits in row) for row in grid]


def plot(
    values: Values,
    cells: int,
    height: int,
    begin: float,
    end: float,
    *,
    zero: bool = True,
    style: str = "plot",
) -> list[Line]:
    """Return a plot with both axes; `begin` and `end` are seconds since 1970."""
    rows, across = height - 1, cells - LABEL - 1
    if rows < 1 or across < 8:
        return [line((text, style)) for text in course(values, cells, max(1, height), 0, 1)]
    low, high = scale(resampled(values, across * 2), zero=zero)
    name = short if zero else _exact
    result: list[Line] = []
    for number, text in enumerate(course(values, across, rows, low, high)):
        label = name(high) if number == 0 else name(low) if number == rows - 1 else ""
        mark = "┤" if label else "│"
        result.append(line((f"{label:>{LABEL}}{mark}", MUTED), (text, style)))
    result.append(line((" " * LABEL + "└" + _times(begin, end, across), MUTED)))
    return result


def _exact(number: float) -> str:
    """Return a number with the digits that tell close ones apart, if there is room."""
    exact = f"{number:.5g}"
    return exact if len(exact) <= LABEL else short(number)


def _times(begin: float, end: float, cells: int) -> str:
    """Return the axis of time."""
    every = max(1, cells // 24)
    form = slice(0, 8) if end - begin <= 900 else slice(0, 5)
    length = form.stop
    text = ""
    for index in range(every + 1):
        at = index * (cells - length) // every
        label = time_of_day(begin + (end - begin) * index / every)[form]
        text += "─" * (at - len(text)) + label
    return text[:cells]

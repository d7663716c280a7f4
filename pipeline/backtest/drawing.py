"""Drawings of a back test as SVG: axes with units and dates, a legend, what stands out."""

import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from html import escape

WIDTH, HEIGHT = 860, 300
"""Of a drawing, in pixels."""
LEFT, RIGHT, TOP, BOTTOM = 80, 16, 30, 46
"""The margins, in which axes and legend stand."""
TICKS = 6
"""Ticks of an axis at most, but for one more."""
STEPS = (
    *(timedelta(seconds=n) for n in (1, 5, 15, 30)),
    *(timedelta(minutes=n) for n in (1, 5, 15, 30)),
    *(timedelta(hours=n) for n in (1, 3, 6, 12)),
    *(timedelta(days=n) for n in (1, 2, 7, 14, 30, 90, 365)),
)
"""Between ticks of time."""

Point = tuple[int, float, bool]
"""Time in ms since 1970, value, and whether it is sent."""
Legend = Sequence[tuple[str, str]]
"""Pairs of a class and its words."""


def bars(days: Sequence[tuple[str, int, int]]) -> str:
    """Return the bytes of each day, all and sent."""
    marks = value_ticks(0.0, float(max((all_ for _, all_, _ in days), default=0) or 1))
    top = marks[-1]
    step = (WIDTH - LEFT - RIGHT) / max(1, len(days))
    shapes = [*_value_axis(marks, 0.0, top, "bytes a day")]
    every = math.ceil(len(days) / TICKS) or 1
    for index, (day, all_, sent) in enumerate(days):
        x = LEFT + index * step
        for name, count in (("all", all_), ("sent", sent)):
            y = _y(count, 0.0, top)
            shapes.append(
                f'<rect class="{name}" x="{x:.1f}" y="{y:.1f}" width="{step * 0.8:.1f}" '
                f'height="{HEIGHT - BOTTOM - y:.1f}"><title>{escape(day)}: {count:,} bytes '
                f"{name}</title></rect>"
            )
        if index % every == 0:
            shapes.append(_text(x + step * 0.4, HEIGHT - BOTTOM + 18, day, "middle"))
    shapes.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, "day (UTC)", "middle"))
    return _svg("bytes", shapes, (("all", "all messages"), ("sent", "would be sent")))


def curves(points: Sequence[Point], unit: str, worst_ms: int | None) -> str:
    """Return raw values, and what a reader has of them who takes the last one that was sent."""
    if not points:
        return _svg("curves", [_text(LEFT, HEIGHT / 2, "no readings", "start")], ())
    first, last = points[0][0], points[-1][0]
    marks = value_ticks(min(v for _, v, _ in points), max(v for _, v, _ in points))
    low, high = marks[0], marks[-1]

    def place(time: float, value: float) -> str:
        return f"{_x(time, first, last):.1f},{_y(value, low, high):.1f}"

    raw = " ".join(place(time, value) for time, value, _ in points)
    kept = " ".join(place(time, value) for time, value in _steps(points))
    shapes = [*_value_axis(marks, low, high, f"value in {unit}" if unit else "value")]
    shapes += [*_time_axis(first, last)]
    shapes += [
        f'<polyline class="raw" points="{raw}"/>',
        f'<polyline class="kept" points="{kept}"/>',
    ]
    legend = [("raw", "every reading"), ("kept", "what a reader has")]
    if worst_ms is not None and first <= worst_ms <= last:
        x = _x(worst_ms, first, last)
        told = _moment(worst_ms, timedelta(seconds=1))
        shapes.append(
            f'<line id="worst" class="worst" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" '
            f'y2="{HEIGHT - BOTTOM}"><title>largest error: {told}</title></line>'
        )
        legend.append(("worst", f"largest error, {told} UTC"))
    return _svg("curves", shapes, legend)


def value_ticks(low: float, high: float) -> list[float]:
    """Return round numbers of which the first is at most `low` and the last at least `high`."""
    if not high - low > abs(high) * 1e-12:
        low, high = low - (abs(low) or 1.0) / 2, high + (abs(high) or 1.0) / 2
    rough = (high - low) / (TICKS - 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(n * power for n in (1, 2, 5, 10, 20) if n * power >= rough)
    begin, end = math.floor(low / step), math.ceil(high / step)
    return [n * step for n in range(begin, end + 1)]


def time_ticks(first: int, last: int) -> tuple[list[int], timedelta]:
    """Return round times (ms) from `first` to `last`, and what lies between them."""
    span = timedelta(milliseconds=last - first)
    step = next((each for each in STEPS if span / each <= TICKS), STEPS[-1])
    ms = step // timedelta(milliseconds=1)
    return list(range(-(-first // ms) * ms, last + 1, ms)), step


def _steps(points: Sequence[Point]) -> Iterator[tuple[int, float]]:
    """Yield the corners of the line of the last value that was sent."""
    held: float | None = None
    for time, value, sent in points:
        if held is not None:
            yield time, held
        if sent:
            held = value
            yield time, value


def _value_axis(marks: Sequence[float], low: float, high: float, title: str) -> Iterator[str]:
    for mark in marks:
        y = _y(mark, low, high)
        yield f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield _text(LEFT - 6, y + 4, f"{mark:,.10g}", "end")
    middle = (TOP + HEIGHT - BOTTOM) / 2
    turned = f'transform="rotate(-90 14 {middle})"'
    yield f'<text x="14" y="{middle}" text-anchor="middle" {turned}>{escape(title)}</text>'


def _time_axis(first: int, last: int) -> Iterator[str]:
    marks, step = time_ticks(first, last)
    for mark in marks:
        x = _x(mark, first, last)
        yield f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>'
        yield _text(x, HEIGHT - BOTTOM + 18, _moment(mark, step), "middle")
    begin = datetime.fromtimestamp(first / 1000, UTC).strftime("%Y-%m-%d %H:%M")
    yield _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, f"time (UTC), from {begin}", "middle")


def _moment(ms: int, step: timedelta) -> str:
    form = "%Y-%m-%d" if step >= timedelta(days=1) else "%m-%d %H:%M"
    form = "%m-%d %H:%M:%S" if step < timedelta(minutes=1) else form
    return datetime.fromtimestamp(ms / 1000, UTC).strftime(form)


def _x(time: float, first: int, last: int) -> float:
    return LEFT + (time - first) / max(1, last - first) * (WIDTH - LEFT - RIGHT)


def _y(value: float, low: float, high: float) -> float:
    return HEIGHT - BOTTOM - (value - low) / (high - low) * (HEIGHT - TOP - BOTTOM)


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _svg(name: str, shapes: Sequence[str], legend: Legend) -> str:
    """Return a drawing with its frame and its legend above it."""
    keys = []
    for index, (kind, words) in enumerate(legend):
        x = LEFT + index * 180
        keys.append(f'<rect class="key {kind}" x="{x}" y="8" width="14" height="10"/>')
        keys.append(_text(x + 20, 17, words, "start"))
    frame = (
        f'<path class="frame" d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/>'
        f'<g class="legend">{"".join(keys)}</g>'
    )
    return f'<svg id="{name}" viewBox="0 0 {WIDTH} {HEIGHT}">{"".join(shapes)}{frame}</svg>'

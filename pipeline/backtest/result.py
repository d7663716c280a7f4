"""The sums of a back test as figures, as words and as a page."""

from collections import Counter
from collections.abc import Callable
from html import escape
from typing import Any

from pipeline.backtest.fold import Sums
from pipeline.printable import printable

MEGABYTE = 1_000_000
WIDTH, HEIGHT = 860, 220
"""Of the drawings, in pixels."""

Points = list[tuple[int, float, bool]]
Figures = dict[str, Any]


def figures(sums: list[Sums], tariff: float) -> Figures:
    """Return the sums over all topics, by gateway, device and day; money at `tariff` a megabyte."""
    return {
        **_added(sums, tariff),
        "by_gateway": _grouped(sums, lambda each: each.gateway_id, tariff),
        "by_device": _grouped(sums, lambda each: f"{each.gateway_id}: {each.topic}", tariff),
        "by_day": _grouped(sums, lambda each: each.date, tariff),
    }


def as_text(rule: str, found: Figures) -> str:
    """Return the figures as lines for a person."""
    lines = [f"rule                {rule}", *(f"{name:<20}{text}" for name, text in _words(found))]
    rows = sorted(found["by_device"].items(), key=lambda item: -item[1]["bytes_sent"])
    lines += [
        f"  {name}: {one['sent']:,} of {one['rows']:,} sent, {one['bytes_sent']:,} bytes"
        for name, one in rows[:20]
    ]
    return "\n".join(map(printable, lines))


def as_page(rule: str, alarm: str | None, found: Figures, device: str, points: Points) -> str:
    """Return one self-contained HTML page: no script, nothing that is loaded from elsewhere."""
    facts = "".join(f"<tr><th>{escape(a)}</th><td>{escape(b)}</td></tr>" for a, b in _words(found))
    gateways = "".join(
        f"<tr><td>{escape(name)}</td><td>{one['rows']:,}</td><td>{one['sent']:,}</td>"
        f"<td>{one['bytes_all']:,}</td><td>{one['bytes_sent']:,}</td><td>{one['missed']:,}</td></tr>"
        for name, one in sorted(found["by_gateway"].items())
    )
    days = sorted(found["by_day"].items())
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Back test</title><style>
body{{font:15px/1.5 sans-serif;max-width:900px;margin:2em auto;padding:0 1em;color:#222}}
table{{border-collapse:collapse}}
td,th{{padding:.2em .8em;text-align:right;border-bottom:1px solid #ddd}}
th:first-child,td:first-child{{text-align:left}}code{{background:#f2f2f2;padding:.1em .3em}}
svg{{width:100%;height:auto;background:#fafafa}}.all{{fill:#c8cdd3}}.sent{{fill:#2b6cb0}}
.raw{{fill:none;stroke:#9aa3ad}}.kept{{fill:none;stroke:#c05621;stroke-width:2}}
</style></head><body>
<h1>Back test</h1>
<p>Rule <code>{escape(rule)}</code>{f", alarm <code>{escape(alarm)}</code>" if alarm else ""}</p>
<table id="facts">{facts}</table>
<h2>Bytes a day, before and after</h2>
{_bars(days)}
<h2>Raw and reconstructed: {escape(device or "no readings")}</h2>
{_curves(points)}
<h2>Missed alarms</h2>
<p id="missed">{found["missed"]:,} of {found["alarms"]:,} alarms would not have been sent.</p>
<h2>By gateway</h2>
<table><tr><th>gateway</th><th>messages</th><th>sent</th><th>bytes before</th><th>bytes after</th>
<th>alarms missed</th></tr>{gateways}</table>
</body></html>
"""


def _added(sums: list[Sums], tariff: float) -> Figures:
    counts = Counter[str]()
    names = ("rows", "sent", "bytes_all", "bytes_sent", "bytes_batched_all", "bytes_batched_sent")
    for each in sums:
        counts.update({name: getattr(each, name) for name in (*names, "alarms", "missed")})
    errors = [each.largest_error for each in sums if each.largest_error is not None]
    return {
        **{name: counts[name] for name in (*names, "alarms", "missed")},
        "longest_silence_ms": max((each.longest_silence_ms for each in sums), default=0),
        "largest_error": max(errors, default=None),
        "cost_all": round(counts["bytes_batched_all"] / MEGABYTE * tariff, 4),
        "cost_sent": round(counts["bytes_batched_sent"] / MEGABYTE * tariff, 4),
    }


def _grouped(sums: list[Sums], key: Callable[[Sums], str], tariff: float) -> dict[str, Figures]:
    groups: dict[str, list[Sums]] = {}
    for each in sums:
        groups.setdefault(key(each), []).append(each)
    return {name: _added(group, tariff) for name, group in groups.items()}


def _words(found: Figures) -> list[tuple[str, str]]:
    share = found["sent"] / found["rows"] if found["rows"] else 0.0
    error = found["largest_error"]
    return [
        ("messages", f"{found['rows']:,}"),
        ("would be sent", f"{found['sent']:,} ({share:.1%})"),
        ("bytes, alone", f"{found['bytes_sent']:,} of {found['bytes_all']:,}"),
        ("bytes, in batches", f"{found['bytes_batched_sent']:,} of {found['bytes_batched_all']:,}"),
        ("cost, in batches", f"{found['cost_sent']:,.4f} of {found['cost_all']:,.4f}"),
        ("longest silence", f"{found['longest_silence_ms'] / 1000:,.1f} s"),
        ("largest error", "none" if error is None else f"{error:g}"),
        ("alarms missed", f"{found['missed']:,} of {found['alarms']:,}"),
    ]


def _bars(days: list[tuple[str, Figures]]) -> str:
    largest = max((one["bytes_all"] for _, one in days), default=0) or 1
    step = WIDTH / max(1, len(days))
    shapes = []
    for index, (day, one) in enumerate(days):
        for name, count in (("all", one["bytes_all"]), ("sent", one["bytes_sent"])):
            tall = HEIGHT * count / largest
            shapes.append(
                f'<rect class="{name}" x="{index * step:.1f}" y="{HEIGHT - tall:.1f}" '
                f'width="{step * 0.8:.1f}" height="{tall:.1f}"><title>{escape(day)}: {count:,} '
                f"bytes {name}</title></rect>"
            )
    return f'<svg id="bytes" viewBox="0 0 {WIDTH} {HEIGHT}">{"".join(shapes)}</svg>'


def _curves(points: Points) -> str:
    if not points:
        return '<svg id="curves" viewBox="0 0 1 1"></svg>'
    times = [time for time, _, _ in points]
    values = [value for _, value, _ in points]
    across = WIDTH / max(1, max(times) - min(times))
    up = (HEIGHT - 10) / ((max(values) - min(values)) or 1.0)

    def place(time: int, value: float) -> tuple[float, float]:
        return (time - min(times)) * across, HEIGHT - 5 - (value - min(values)) * up

    raw = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(t, v) for t, v, _ in points))
    kept = []
    held: float | None = None
    for time, value, sent in points:
        if held is not None:
            kept.append(place(time, held))
        if sent:
            held = value
            kept.append(place(time, value))
    steps = " ".join(f"{x:.1f},{y:.1f}" for x, y in kept)
    return (
        f'<svg id="curves" viewBox="0 0 {WIDTH} {HEIGHT}"><polyline class="raw" points="{raw}"/>'
        f'<polyline class="kept" points="{steps}"/></svg>'
    )

"""The sums of a back test as figures, as words and as a page."""

from collections import Counter
from collections.abc import Callable, Sequence
from html import escape
from typing import Any, NamedTuple

from pipeline.backtest.fold import Sums
from pipeline.printable import printable

MEGABYTE = 1_000_000

Figures = dict[str, Any]
Point = tuple[int, float, bool]
"""Time in ms since 1970, value, and whether it is sent."""


class Worst(NamedTuple):
    """The readings of the worst device, around its worst moment: that of the largest error.

    Without an error it is one of which nothing is sent, from its first reading on.
    """

    device: str = ""
    unit: str = ""
    worst_ms: int | None = None
    points: Sequence[Point] = ()
    error: float | None = None
    held: float | None = None
    """The value that a reader has before the first of the points."""


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


def as_page(rule: str, alarm: str | None, found: Figures, worst: Worst) -> str:
    """Return one self-contained HTML page: nothing of it is loaded from elsewhere."""
    from pipeline.backtest import plots

    facts = "".join(f"<tr><th>{escape(a)}</th><td>{escape(b)}</td></tr>" for a, b in _words(found))
    gateways = "".join(
        f"<tr><td>{escape(name)}</td><td>{one['rows']:,}</td><td>{one['sent']:,}</td>"
        f"<td>{one['bytes_all']:,}</td><td>{one['bytes_sent']:,}</td><td>{one['missed']:,}</td></tr>"
        for name, one in sorted(found["by_gateway"].items())
    )
    sizes = sorted(found["by_day"].items())
    days = [(day, one["bytes_all"], one["bytes_sent"]) for day, one in sizes]
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Back test</title><style>
body{{font:15px/1.5 sans-serif;max-width:900px;margin:2em auto;padding:0 1em;color:#222}}
table{{border-collapse:collapse}}
td,th{{padding:.2em .8em;text-align:right;border-bottom:1px solid #ddd}}
th:first-child,td:first-child{{text-align:left}}code{{background:#f2f2f2;padding:.1em .3em}}
</style>{plots.script()}</head><body>
<h1>Back test</h1>
<p>Rule <code>{escape(rule)}</code>{f", alarm <code>{escape(alarm)}</code>" if alarm else ""}</p>
<table id="facts">{facts}</table>
<h2>Bytes a day, before and after</h2>
{plots.bytes_by_day(days)}
<h2>Raw and reconstructed: {escape(worst.device or "no readings")}</h2>
{plots.readings(worst)}
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
        counts.update(
            {name: getattr(each, name) for name in (*names, "alarms", "missed", "unknown")}
        )
    errors = [each.largest_error for each in sums if each.largest_error is not None]
    return {
        **{name: counts[name] for name in (*names, "alarms", "missed", "unknown")},
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


def error_words(found: Figures) -> str:
    """Return the largest error; there is no bound where a reader has no value at all."""
    error = found["largest_error"]
    if found["unknown"]:
        least = "" if error is None else f", else {error:g}"
        return f"no bound: {found['unknown']:,} readings before any was sent{least}"
    return "none" if error is None else f"{error:g}"


def _words(found: Figures) -> list[tuple[str, str]]:
    share = found["sent"] / found["rows"] if found["rows"] else 0.0
    return [
        ("messages", f"{found['rows']:,}"),
        ("would be sent", f"{found['sent']:,} ({share:.1%})"),
        ("bytes, alone", f"{found['bytes_sent']:,} of {found['bytes_all']:,}"),
        ("bytes, in batches", f"{found['bytes_batched_sent']:,} of {found['bytes_batched_all']:,}"),
        ("cost, in batches", f"{found['cost_sent']:,.4f} of {found['cost_all']:,.4f}"),
        ("longest silence", f"{found['longest_silence_ms'] / 1000:,.1f} s"),
        ("largest error", error_words(found)),
        ("alarms missed", f"{found['missed']:,} of {found['alarms']:,}"),
    ]

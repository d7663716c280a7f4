"""How the screen writes amounts, spans of time and text from elsewhere."""

from collections.abc import Iterable
from datetime import datetime

from rich.cells import cell_len, chop_cells, set_cell_size

UNKNOWN = "—"
REPLACEMENT = "·"
BARS = "▁▂▃▄▅▆▇"

TEN_YEARS = 10 * 365 * 86_400
"""Seconds that a gateway gives for as long as anybody asks."""


def printable(text: str, limit: int) -> str:
    """Return `text` on one line, safe for a terminal, with at most `limit` characters.

    Control, format and surrogate characters (escape sequences, direction overrides) become `·`;
    what is cut off is shown as `…`.
    """
    head = text[:limit]
    if not head.isprintable():
        head = "".join(character if character.isprintable() else REPLACEMENT for character in head)
    return head[:-1] + "…" if len(text) > limit else head


def fit(text: str, width: int, *, right: bool = False) -> str:
    """Return `text` padded or cut with `…` to exactly `width` terminal cells."""
    cells = cell_len(text)
    if width <= 0:
        return ""
    if cells > width:
        return set_cell_size(text, width - 1) + "…"
    padding = " " * (width - cells)
    return padding + text if right else text + padding


def wrapped(text: str, width: int) -> list[str]:
    """Return `text` in lines of at most `width` terminal cells, broken at spaces where it can be.

    Further lines are indented as the first, by two more.
    """
    indent = text[: len(text) - len(text.lstrip())][: width // 2]
    result, shown = [], indent
    for word in text.split():
        if shown.strip() and cell_len(f"{shown} {word}") > width:
            result.append(shown)
            shown = f"{indent}  " if indent else ""
        shown += word if not shown.strip() else f" {word}"
        if cell_len(shown) > width:
            *whole, shown = chop_cells(shown, max(2, width))
            result += whole
    return [*result, shown]


def amount(count: int | None) -> str:
    """Return a count as `4,912`."""
    return UNKNOWN if count is None else f"{count:,}"


def rate(each_second: float | None) -> str:
    """Return a rate as `0.4/s`, `812/s`, `12.4k/s`."""
    if each_second is None:
        return UNKNOWN
    if each_second < 9.95:
        return f"{each_second:.1f}/s"
    if each_second < 9_999.5:
        return f"{each_second:,.0f}/s"
    if each_second < 999_950:
        return f"{each_second / 1e3:,.1f}k/s"
    return f"{each_second / 1e6:,.1f}M/s"


def brief_rate(each_second: float) -> str:
    """Return a rate in at most 6 cells: `0.4/s`, `812/s`, `1.3k/s`, `16k/s`, `2.5M/s`."""
    if each_second < 999.5:
        return rate(each_second)
    if each_second < 9_950:
        return f"{each_second / 1e3:.1f}k/s"
    if each_second < 999_500:
        return f"{each_second / 1e3:.0f}k/s"
    return f"{min(each_second / 1e6, 9.9):.1f}M/s"


def span(seconds: float | None) -> str:
    """Return a span of time as `12s`, `2m 11s`, `3h 05m`, `4d 03h`; a negative one as `0s`."""
    if seconds is None:
        return UNKNOWN
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole}s"
    if whole < 3_600:
        return f"{whole // 60}m {whole % 60:02}s"
    if whole < 86_400:
        return f"{whole // 3_600}h {whole % 3_600 // 60:02}m"
    return f"{whole // 86_400:,}d {whole % 86_400 // 3_600:02}h"


def age(seconds: float | None) -> str:
    """Return how old something is in steps that rarely change: `<5s`, `12s`, `2m`, `3h`, `4d`."""
    if seconds is None:
        return UNKNOWN
    whole = max(0, int(seconds))
    if whole < 5:
        return "<5s"
    if whole < 60:
        return f"{whole // 5 * 5}s"
    if whole < 3_600:
        return f"{whole // 60}m"
    return f"{whole // 3_600}h" if whole < 86_400 else f"{whole // 86_400:,}d"


def lasting(seconds: float | None) -> str:
    """Return how long something has lasted as `12s`, `5m`, `3h 05m`: with few changes to write."""
    if seconds is None:
        return UNKNOWN
    return f"{seconds // 60:.0f}m" if 60 <= seconds < 3_600 else span(seconds)


def long_span(days: int | None) -> str:
    """Return a span of days as `11 days`, `8 months`, `12 years`; 0 is not known yet."""
    if not days:
        return UNKNOWN
    if days >= 730:
        return f"{days / 365.25:,.0f} years"
    return f"{days / 30.4:.0f} months" if days >= 60 else f"{days} days"


def outage(seconds: int | None) -> str:
    """Return how long an outage may last as `9.4 days`, `3.1 h`, `12 min`; 10 years are any."""
    if seconds is None:
        return UNKNOWN
    if seconds >= TEN_YEARS:
        return "over 10 years"
    for unit, length in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.1f} {unit}"
    return f"{seconds} s"


def size(octets: int | None) -> str:
    """Return a number of bytes as `812 B`, `12.3 kB`, `1.5 GB`."""
    if octets is None:
        return UNKNOWN
    if octets < 1_000:
        return f"{octets} B"
    scaled = float(octets)
    for unit in ("kB", "MB", "GB"):
        scaled /= 1_000
        if scaled < 999.95:
            return f"{scaled:.1f} {unit}"
    return f"{scaled / 1_000:,.1f} TB"


def _local(seconds: float | None) -> datetime | None:
    """Return a time that a calendar has."""
    if seconds is None:
        return None
    try:
        return datetime.fromtimestamp(seconds).astimezone()
    except (OverflowError, ValueError, OSError):
        return None


def time_of_day(seconds: float | None) -> str:
    """Return a time in seconds since 1970 as local `HH:MM:SS`."""
    then = _local(seconds)
    return UNKNOWN if then is None else then.strftime("%H:%M:%S")


def moment(seconds: float | None, now: float) -> str:
    """Return a time as local `HH:MM:SS`, or with its date if that is another day."""
    then, today = _local(seconds), _local(now)
    if then is None or today is None:
        return UNKNOWN
    return then.strftime("%H:%M:%S" if then.date() == today.date() else "%d %b %H:%M")


def sparkline(values: Iterable[float], width: int) -> str:
    """Return the last `width` values as bars between their lowest and their highest."""
    shown = list(values)[-width:] if width > 0 else []
    if not shown:
        return ""
    lowest, highest = min(shown), max(shown)
    scale = highest - lowest
    if scale <= 0:
        return BARS[0] * len(shown)
    top = len(BARS) - 1
    return "".join(BARS[round((value - lowest) / scale * top)] for value in shown)

"""Windows of time in the five fields of cron, with a length: `0 2 * * * for 30m`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, tzinfo

from gateway.config.quantities import duration

LONGEST_SECONDS = 24 * 3600
"""The longest window; two that touch are one to the link."""

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
LONGEST_MONTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)

_WINDOW = re.compile(r"(\S+) (\S+) (\S+) (\S+) (\S+) for (\S+)")
_PART = re.compile(r"(\*|[0-9a-z]+)(?:-([0-9a-z]+))?(?:/([0-9]{1,4}))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Window:
    """When windows begin, and their length in seconds; `weekdays` are 0 (Sunday) to 6."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either_day: bool
    every_hour: bool
    seconds: int

    def begins_on(self, day: date) -> bool:
        """Return whether windows begin on a day.

        Of day of the month and day of the week one is enough where both are restricted, as in cron.
        """
        if day.month not in self.months:
            return False
        of_month, of_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return of_month or of_week if self.either_day else of_month and of_week

    def starts(self, day: date, zone: tzinfo | None) -> Iterator[float]:
        """Yield the seconds since 1970 at which windows begin on a day; None is the local zone.

        A time that the clocks skip in spring is an hour later. In autumn a time that comes
        twice counts once, its first time, unless the hours begin with `*`: then both.
        """
        if not self.begins_on(day):
            return
        for hour in sorted(self.hours):
            for minute in sorted(self.minutes):
                local = datetime(day.year, day.month, day.day, hour, minute, tzinfo=zone)
                first = local.timestamp()
                yield first
                second = local.replace(fold=1).timestamp() if self.every_hour else first
                if second > first:
                    yield second


def parse_window(text: str) -> Window:
    """Return the window that a text such as `*/15 8-18 * * mon-fri for 5m` describes.

    Raises ValueError with what is wrong.
    """
    match = _WINDOW.fullmatch(text)
    if match is None:
        raise ValueError('five fields as in cron and a length, such as "0 2 * * * for 30m"')
    minutes, hours, days, months, weekdays, length = match.groups()
    window = Window(
        minutes=_field(minutes, 0, 59, "minute"),
        hours=_field(hours, 0, 23, "hour"),
        days=_field(days, 1, 31, "day of the month"),
        months=_field(months, 1, 12, "month", MONTHS),
        weekdays=frozenset(day % 7 for day in _field(weekdays, 0, 7, "weekday", WEEKDAYS)),
        either_day=not days.startswith("*") and not weekdays.startswith("*"),
        every_hour=hours.startswith("*"),
        seconds=_length(length),
    )
    shortest_day = min(window.days)
    if not window.either_day and all(
        shortest_day > LONGEST_MONTHS[month - 1] for month in window.months
    ):
        raise ValueError(f"a day that its months have, not {shortest_day}")
    return window


def _length(text: str) -> int:
    seconds = duration(text)
    if not 60 <= seconds <= LONGEST_SECONDS:
        raise ValueError('a length from "1m" to "24h"')
    return seconds


def _field(
    text: str, lowest: int, highest: int, name: str, names: tuple[str, ...] = ()
) -> frozenset[int]:
    """Return the numbers that a field of cron stands for."""
    allowed = f"a {name} from {lowest} to {highest}, not {text!r}"
    found: set[int] = set()
    for part in text.lower().split(","):
        match = _PART.fullmatch(part)
        if match is None:
            raise ValueError(allowed)
        begin, end, step = match.groups()
        every = int(step) if step else 1
        first = lowest if begin == "*" else _number(begin, lowest, names)
        last = highest if begin == "*" or (step and not end) else first
        last = _number(end, lowest, names) if end else last
        if (begin == "*" and end) or not lowest <= first <= last <= highest or not every:
            raise ValueError(allowed)
        found.update(range(first, last + 1, every))
    return frozenset(found)


def _number(text: str, lowest: int, names: tuple[str, ...]) -> int:
    if text in names:
        return names.index(text) + lowest
    return int(text) if text.isdigit() else -1

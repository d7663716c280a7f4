"""Time windows in the five fields of cron, with a length: `0 2 * * * for 30m`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo

from cronsim import CronSim, CronSimError

from gateway.settings.quantities import seconds as whole_seconds

LONGEST_SECONDS = 24 * 3600
"""The longest window; two adjacent ones are one to the link."""

FIELDS = (
    "a minute from 0 to 59",
    "an hour from 0 to 23",
    "a day of the month from 1 to 31",
    "a month from 1 to 12",
    "a weekday from 0 to 7",
)
ALWAYS = ["*"] * len(FIELDS)
DAY = 2

_WINDOW = re.compile(r"((?:\S+ ){5})for (\S+)")


@dataclass(frozen=True, slots=True)
class Window:
    """Cron's fields for the beginnings of windows, and their length in seconds."""

    fields: tuple[str, ...]
    seconds: int

    def starts(self, local: datetime, zone: tzinfo | None) -> Iterator[float]:
        """Yield the seconds since 1970 at which windows begin after a local time without a zone.

        A time that the clocks of `zone` (None: the board's) skip in spring is an hour later. In
        autumn a repeated time counts once, the first time, unless the hours begin with `*`: then
        both count.
        """
        every_hour = self.fields[1].startswith("*")
        # without a zone, since cronsim would move what is skipped to the end of the gap
        for without_zone in CronSim(" ".join(self.fields), local):
            begin = without_zone.replace(tzinfo=zone)
            first = begin.timestamp()
            yield first
            second = begin.replace(fold=1).timestamp() if every_hour else first
            if second > first:
                yield second


def parse_window(text: str) -> Window:
    """Return the window of a text such as `*/15 8-18 * * mon-fri for 5m`.

    Raises ValueError with the fault.
    """
    match = _WINDOW.fullmatch(text)
    if match is None:
        raise ValueError('five fields as in cron and a length, such as "0 2 * * * for 30m"')
    fields = match[1].split()
    for index, allowed in enumerate(FIELDS):
        if not _is_valid([*ALWAYS[:index], fields[index], *ALWAYS[index + 1 :]]):
            raise ValueError(f"{allowed}, not {fields[index]!r}")
    if not _is_valid(fields):
        raise ValueError(f"a day that its months have, not {fields[DAY]}")
    return Window(tuple(fields), _length(match[2]))


def _is_valid(fields: list[str]) -> bool:
    try:
        CronSim(" ".join(fields), datetime.min.replace(tzinfo=UTC))
    except CronSimError:
        return False
    return True


def _length(text: str) -> int:
    seconds = whole_seconds()(text)
    if not 60 <= seconds <= LONGEST_SECONDS:
        raise ValueError('a length from "1m" to "24h"')
    return seconds

"""Windows of one length, and days by the time zones of gateways."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

from pipeline.tables.arrays import Array, Coded, dates

DAY_US = 86_400_000_000
_EPOCH = date(1970, 1, 1)


def ordinal(day: date) -> int:
    """Return a date's number since 1970."""
    return (day - _EPOCH).days


def day_of(number: int) -> date:
    """Return the date of such a number."""
    return _EPOCH + timedelta(number)


def dated(columns: Mapping[str, pa.Array], days: Array, schema: pa.Schema) -> pa.RecordBatch:
    """Return rows of a schema whose last column is `date`; `days` are the numbers of the dates."""
    arrays = [columns[name] for name in schema.names[:-1]]
    return pa.RecordBatch.from_arrays([*arrays, dates(days)], schema=schema)


class Calendar:
    """Windows by number: those of one length, in UTC, since 1970."""

    def __init__(self, length_us: int = DAY_US) -> None:
        self._length = length_us
        self._of_day = DAY_US // length_us

    def of(self, time: Array, _gateway: Coded) -> Array:
        """Return the windows of some times."""
        return time // self._length

    def start(self, window: Array, _gateway: Coded) -> Array:
        """Return when windows begin."""
        return window * self._length

    def date(self, window: Array) -> Array:
        """Return the numbers of the windows' dates."""
        return window // self._of_day

    def first(self, day: int) -> int:
        """Return the first window of a date."""
        return day * self._of_day


class Zoned(Calendar):
    """Days by their number since 1970, by the zones of gateways; some have 23 or 25 hours."""

    def __init__(self, zones: Mapping[str, str], first: date, last: date) -> None:
        super().__init__()
        self._zones = zones
        self._first = ordinal(first)
        self._days = [first + timedelta(n) for n in range((last - first).days + 1)]
        self._midnights: dict[str, Array] = {}

    def of(self, time: Array, gateway: Coded) -> Array:
        """Return the days of some times."""
        found = np.empty(len(time), np.int64)
        for places, midnights in self._by_gateway(gateway):
            found[places] = np.searchsorted(midnights, time[places], "right") - 1 + self._first
        return found

    def start(self, window: Array, gateway: Coded) -> Array:
        """Return when days begin."""
        found = np.empty(len(window), np.int64)
        for places, midnights in self._by_gateway(gateway):
            found[places] = midnights[window[places] - self._first]
        return found

    def _by_gateway(self, gateway: Coded) -> Sequence[tuple[Array, Array]]:
        zones = [self._zones.get(name, "UTC") for name in gateway.values.to_pylist()]
        number = {zone: place for place, zone in enumerate(dict.fromkeys(zones))}
        of_rows = np.array([number[zone] for zone in zones], np.int64)[gateway.codes]
        return [
            (np.flatnonzero(of_rows == place), self._midnights_of(zone))
            for zone, place in number.items()
        ]

    def _midnights_of(self, zone: str) -> Array:
        """Return when the days begin in a zone; one without midnight as its clock goes on."""
        if zone not in self._midnights:
            info = ZoneInfo(zone)
            begins = [
                datetime(day.year, day.month, day.day, tzinfo=info).astimezone(UTC)
                for day in self._days
            ]
            seconds = [int(begin.timestamp()) for begin in begins]
            self._midnights[zone] = np.array(seconds, np.int64) * 1_000_000
        return self._midnights[zone]

"""Days of zones beside the standard library's, where clocks go on and back at midnight."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest

from pipeline.gold.calendars import Calendar, Zoned, ordinal
from pipeline.tables.arrays import coded

CHANGES = {
    "Europe/Berlin": date(2025, 10, 26),
    "America/Havana": date(2025, 11, 2),  # at one o'clock it is midnight again
    "Asia/Beirut": date(2025, 3, 30),  # there is no midnight
    "America/Sao_Paulo": date(2018, 2, 17),  # at midnight it is 23 o'clock of the day before
    "Australia/Lord_Howe": date(2025, 4, 6),  # half an hour
    "Pacific/Apia": date(2011, 12, 29),  # the next day was left out
    "Asia/Kathmandu": date(2025, 11, 21),
}
HOUR = timedelta(hours=1)


@pytest.mark.parametrize("zone", CHANGES)
def test_days_are_those_of_the_zone(zone: str) -> None:
    day = CHANGES[zone]
    begin = datetime(day.year, day.month, day.day, tzinfo=UTC) - 48 * HOUR
    times = [begin + n * HOUR / 4 for n in range(4 * 24 * 5)]
    gateways = coded(pa.chunked_array([["barn", "mill"] * (len(times) // 2)]))
    calendar = Zoned({"barn": zone}, day - timedelta(4), day + timedelta(6))
    micros = np.array([int(time.timestamp()) * 1_000_000 for time in times])
    found = calendar.of(micros, gateways)
    for place, time in enumerate(times):
        wanted = time.astimezone(ZoneInfo(zone) if place % 2 == 0 else UTC).date()
        assert found[place] == ordinal(wanted), (time, wanted)
    starts = calendar.start(found, gateways)
    assert (starts <= micros).all()
    assert (calendar.start(found + 1, gateways) > micros).all()
    firsts = [starts[place] for place in range(0, len(times), 2)]
    for start in sorted(set(firsts))[1:]:  # the day before ends a moment earlier
        moment = datetime.fromtimestamp(int(start) // 1_000_000, UTC)
        before = (moment - timedelta(seconds=1)).astimezone(ZoneInfo(zone))
        assert before.date() < moment.astimezone(ZoneInfo(zone)).date()


def test_windows_of_one_length() -> None:
    hours = Calendar(3_600_000_000)
    gateways = coded(pa.chunked_array([["barn"]]))
    window = hours.of(np.array([25 * 3_600_000_000 + 7]), gateways)
    assert window.tolist() == [25]
    assert hours.start(window, gateways).tolist() == [25 * 3_600_000_000]
    assert hours.date(window).tolist() == [1]
    assert hours.first(1) == 24

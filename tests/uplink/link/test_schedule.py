"""When the link is open, over days on which the clocks change too."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.uplink.link.cron import parse_window
from gateway.uplink.link.schedule import Schedule

BERLIN = ZoneInfo("Europe/Berlin")
UTC = ZoneInfo("UTC")


def _schedule(*windows: str, zone: ZoneInfo = BERLIN) -> Schedule:
    return Schedule([parse_window(window) for window in windows], zone)


def _at(text: str, zone: ZoneInfo = BERLIN, fold: int = 0) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=zone, fold=fold).timestamp()


def _ends(schedule: Schedule, now: float) -> float:
    """Return the first minute at which the schedule is not open any more."""
    while schedule.is_open(now):
        now += 60
    return now


def test_a_window_is_open_from_its_start_to_its_end() -> None:
    schedule = _schedule("0 2 * * * for 30m")
    start = _at("2026-11-21 02:00")
    assert [schedule.is_open(start + offset) for offset in (-1, 0, 1799, 1800)] == [
        *(False, True),
        *(True, False),
    ]
    assert schedule.opens(start - 1) == start
    assert schedule.opens(start) == start + 86_400


def test_windows_cross_midnight_and_add_up() -> None:
    schedule = _schedule("30 23 * * * for 2h", "0 1 * * sat for 3h")
    assert _ends(schedule, _at("2026-11-21 01:10")) == _at("2026-11-21 04:00")  # a Saturday
    assert _ends(schedule, _at("2026-11-22 01:10")) == _at("2026-11-22 01:30")


def test_a_time_that_spring_skips_comes_an_hour_later() -> None:
    schedule = _schedule("30 2 * * * for 30m")
    assert schedule.opens(_at("2026-03-29 01:00")) == _at("2026-03-29 03:30")
    assert schedule.opens(_at("2026-03-29 03:30")) == _at("2026-03-30 02:30")


def test_a_time_that_autumn_repeats_counts_once() -> None:
    schedule = _schedule("30 2 * * * for 10m")
    first = _at("2026-10-25 02:30")
    assert schedule.opens(_at("2026-10-25 01:00")) == first
    assert schedule.opens(first) == _at("2026-10-26 02:30")
    assert not schedule.is_open(_at("2026-10-25 02:35", fold=1))


def test_windows_of_every_hour_go_by_the_hour_that_passes() -> None:
    schedule = _schedule("30 * * * * for 10m")
    opens = [_at("2026-10-25 01:30")]
    for _ in range(3):
        opens.append(schedule.opens(opens[-1]) or 0)
    assert [after - opens[0] for after in opens] == [0, 3600, 7200, 10_800]
    assert schedule.opens(_at("2026-03-29 01:30")) == _at("2026-03-29 03:30")


def test_a_rare_day_is_found() -> None:
    schedule = _schedule("0 0 29 2 * for 1h")
    assert schedule.opens(_at("2096-03-01 00:00")) == _at("2104-02-29 00:00")


WINDOWS = st.builds(
    "{} {} * * {} for {}m".format,
    st.sampled_from(["0", "*/15", "7,52", "30"]),
    st.sampled_from(["*", "2", "1-3", "23", "*/6"]),
    st.sampled_from(["*", "sun", "mon-fri"]),
    st.integers(1, 1440),
)
MOMENTS = st.floats(_at("2026-03-27 00:00"), _at("2026-03-31 00:00")) | st.floats(
    _at("2026-10-23 00:00"), _at("2026-10-27 00:00")
)


@pytest.mark.uncovered
@given(windows=st.lists(WINDOWS, min_size=1, max_size=3), now=MOMENTS)
def test_it_opens_when_it_says_and_ends_when_it_says(windows: list[str], now: float) -> None:
    schedule = _schedule(*windows)
    opens = schedule.opens(now)
    assert opens is not None
    assert opens > now
    assert schedule.is_open(opens)
    assert schedule.is_open(opens + 59)
    between = (now + opens) / 2
    if between < opens and not schedule.is_open(now):
        assert not schedule.is_open(between)  # closed all the way


@pytest.mark.parametrize("zone", [None, UTC])
def test_without_a_zone_it_goes_by_the_boards(zone: ZoneInfo | None) -> None:
    """Whatever that is: noon is noon there."""
    schedule = Schedule([parse_window("0 12 * * * for 1h")], zone)
    opens = schedule.opens(_at("2026-11-21 00:00", UTC))
    assert opens is not None
    assert datetime.fromtimestamp(opens, zone).hour == 12


def test_a_day_long_window_whose_start_was_skipped_ends_two_days_later() -> None:
    nuuk = ZoneInfo("America/Nuuk")  # from 23:00 on a Saturday to Sunday
    schedule = _schedule("30 23 * * sat for 24h", zone=nuuk)
    start, end = _at("2024-03-31 00:30", nuuk), _at("2024-04-01 00:30", nuuk)
    assert schedule.opens(_at("2024-03-31 00:10", nuuk)) == start
    assert not schedule.is_open(start - 1)
    assert _ends(schedule, _at("2024-04-01 00:10", nuuk)) == end


def test_a_window_may_have_begun_tomorrow() -> None:
    newfoundland = ZoneInfo("America/St_Johns")  # from 00:01 on a Sunday back to Saturday
    schedule = _schedule("0 0 * * sun for 30m", zone=newfoundland)
    start = _at("2010-11-07 00:00", newfoundland)
    assert _ends(schedule, _at("2010-11-06 23:10", newfoundland, fold=1)) == start + 1800
    assert not schedule.is_open(_at("2010-11-06 23:10", newfoundland))

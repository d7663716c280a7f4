"""Windows in cron's fields: what they stand for, and what is no window."""

from datetime import UTC, datetime, timedelta

import pytest

from gateway.uplink.link.cron import Window, parse_window
from tests.support.table import table


def _window(text: str) -> Window:
    return parse_window(f"{text} for 30m")


MIDNIGHT = datetime(2026, 11, 21)  # a Saturday  # noqa: DTZ001 - local times have no zone


@table(
    ("text", "begins"),
    [
        ("0 2 * * *", ["21 02:00", "22 02:00"]),
        ("*/20 3 * * *", ["21 03:00", "21 03:20", "21 03:40", "22 03:00"]),
        ("5/20 0 * * *", ["21 00:05", "21 00:25", "21 00:45", "22 00:05"]),
        ("0 8-9,22 * * *", ["21 08:00", "21 09:00", "21 22:00", "22 08:00"]),
        ("0 1-9/4 * * *", ["21 01:00", "21 05:00", "21 09:00", "22 01:00"]),
        ("0 0 1,23 * *", ["23 00:00", "01 00:00", "23 00:00"]),
        ("0 0 30 Jan,JUN-aug *", ["30 00:00", "30 00:00", "30 00:00"]),
        ("0 0 * * mon-tue", ["23 00:00", "24 00:00", "30 00:00"]),
        ("0 0 * * 0", ["22 00:00", "29 00:00"]),
        ("0 0 * * 7", ["22 00:00", "29 00:00"]),
        ("0 0 * * 6-7", ["21 00:00", "22 00:00", "28 00:00"]),
        ("0 0 13 * fri", ["27 00:00", "04 00:00", "11 00:00", "13 00:00"]),  # one is enough
        ("0 0 29 2 *", ["29 00:00"]),
        ("0 0 31 2 mon", ["01 00:00", "08 00:00"]),  # the weekday makes up for it
        ("0 0 L * *", ["30 00:00", "31 00:00"]),  # the last of its month
    ],
)
def test_windows_begin_when_cron_would(text: str, begins: list[str]) -> None:
    starts = _window(text).starts(MIDNIGHT - timedelta(seconds=1), UTC)
    found = [datetime.fromtimestamp(next(starts), UTC) for _ in begins]
    assert [f"{each:%d %H:%M}" for each in found] == begins


@pytest.mark.parametrize(("text", "seconds"), [("1m", 60), ("90s", 90), ("24h", 86_400)])
def test_the_length_is_a_duration(text: str, seconds: int) -> None:
    assert parse_window(f"0 2 * * * for {text}").seconds == seconds


@table(
    ("text", "reason"),
    [
        ("", "five fields"),
        ("0 2 * * *", "five fields"),
        ("0 2 * * for 30m", "five fields"),
        ("0 2 * * * * for 30m", "five fields"),
        ("60 2 * * * for 30m", "a minute from 0 to 59, not '60'"),
        ("-1 2 * * * for 30m", "a minute from 0 to 59"),
        ("0 24 * * * for 30m", "an? hour from 0 to 23"),
        ("0 2 0 * * for 30m", "a day of the month from 1 to 31"),
        ("0 2 * 13 * for 30m", "a month from 1 to 12"),
        ("0 2 * foo * for 30m", "a month from 1 to 12, not 'foo'"),
        ("0 2 * * 8 for 30m", "a weekday from 0 to 7"),
        ("0 9-8 * * * for 30m", "hour from 0 to 23, not '9-8'"),
        ("*/0 2 * * * for 30m", "a minute"),
        ("*-5 2 * * * for 30m", "a minute"),
        ("1,,2 2 * * * for 30m", "a minute"),
        ("0 2 30 2 * for 30m", "a day that its months have, not 30"),
        ("0 2 31 apr,jun * for 30m", "a day that its months have, not 31"),
        ("0 2 * * * for 30", "a text such as"),
        ("0 2 * * * for 30s", 'from "1m" to "24h"'),
        ("0 2 * * * for 2d", 'from "1m" to "24h"'),
    ],
)
def test_what_is_no_window_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_window(text)

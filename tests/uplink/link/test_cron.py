"""Windows in cron's fields: what they stand for, and what is no window."""

from datetime import date

import pytest

from gateway.uplink.link.cron import Window, parse_window
from tests.support.table import table


def _window(text: str) -> Window:
    return parse_window(f"{text} for 30m")


@table(
    ("text", "name", "numbers"),
    [
        ("0 2 * * *", "minutes", {0}),
        ("0 2 * * *", "hours", {2}),
        ("*/20 * * * *", "minutes", {0, 20, 40}),
        ("5/20 * * * *", "minutes", {5, 25, 45}),
        ("0 8-10,22 * * *", "hours", {8, 9, 10, 22}),
        ("0 1-9/4 * * *", "hours", {1, 5, 9}),
        ("0 0 1,15 * *", "days", {1, 15}),
        ("0 0 * Jan,JUN-aug *", "months", {1, 6, 7, 8}),
        ("0 0 * * mon-fri", "weekdays", {1, 2, 3, 4, 5}),
        ("0 0 * * 0", "weekdays", {0}),
        ("0 0 * * 7", "weekdays", {0}),
        ("0 0 * * 5-7", "weekdays", {5, 6, 0}),
        ("0 0 * * *", "weekdays", set(range(7))),
    ],
)
def test_a_field_stands_for_numbers(text: str, name: str, numbers: set[int]) -> None:
    assert getattr(_window(text), name) == numbers


@pytest.mark.parametrize(("text", "seconds"), [("1m", 60), ("90s", 90), ("24h", 86_400)])
def test_the_length_is_a_duration(text: str, seconds: int) -> None:
    assert parse_window(f"0 2 * * * for {text}").seconds == seconds


@table(
    ("text", "reason"),
    [
        ("", "five fields"),
        ("0 2 * * *", "five fields"),
        ("0 2 * * for 30m", "five fields"),
        ("0 2 * * * *  for 30m", "five fields"),
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


@table(
    ("text", "day", "begins"),
    [
        ("0 0 13 * fri", date(2026, 11, 13), True),  # Friday
        ("0 0 13 * fri", date(2026, 12, 13), True),  # a Sunday: one of the two is enough
        ("0 0 13 * fri", date(2026, 11, 20), True),
        ("0 0 13 * fri", date(2026, 11, 21), False),
        ("0 0 * * fri", date(2026, 11, 21), False),
        ("0 0 13 * *", date(2026, 11, 21), False),
        ("0 0 29 2 *", date(2028, 2, 29), True),
        ("0 0 31 2 mon", date(2026, 2, 2), True),  # the weekday makes up for it
    ],
)
def test_the_days_are_those_of_cron(text: str, day: date, begins: bool) -> None:
    assert _window(text).begins_on(day) is begins

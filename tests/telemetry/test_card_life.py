import pytest

from gateway.telemetry.card_life import default_endurance, life_days, spell_bytes, spell_days
from tests.support.table import table


def test_a_card_lasts_as_long_as_what_it_bears_allows() -> None:
    assert life_days(20 * 10**12, 200 * 10**6) == 100_000
    assert default_endurance(32 * 10**9) == 3_200 * 10**9


def test_nothing_written_wears_nothing() -> None:
    assert life_days(10**12, 0) == float("inf")


@table(
    ("days", "text"),
    [
        (0.2, "0 days"),
        (11, "11 days"),
        (60, "60 days"),
        (70, "2 months"),
        (400, "13 months"),
        (4383, "12 years"),
        (40_000, "more than 100 years"),
        (float("inf"), "more than 100 years"),
    ],
)
def test_days_are_told_in_the_unit_that_says_most(days: float, text: str) -> None:
    assert spell_days(days) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (84_300_000, "84.3 MB"),
        (271_000_000_000, "271 GB"),
        (2.5e12, "2.5 TB"),
    ],
)
def test_bytes_have_a_decimal_unit(count: float, text: str) -> None:
    assert spell_bytes(count) == text

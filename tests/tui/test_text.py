import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.support.table import table
from tui.text import (
    amount,
    brief_rate,
    fit,
    long_span,
    outage,
    printable,
    rate,
    size,
    span,
    sparkline,
    time_of_day,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("barn", "barn"),
        ("a\x1b[2Jb", "a·[2Jb"),
        ("a\nb\tc", "a·b·c"),
        ("\u202eevil", "·evil"),
        ("\ud800", "·"),
        ("0123456789", "0123456…"),
    ],
)
def test_printable(text: str, shown: str) -> None:
    assert printable(text, 8) == shown


@given(st.text(), st.integers(1, 50))
def test_printable_is_one_bounded_line_of_printable_characters(text: str, limit: int) -> None:
    shown = printable(text, limit)
    assert shown.isprintable()
    assert len(shown) <= limit


@pytest.mark.parametrize(
    ("text", "width", "right", "shown"),
    [
        ("ab", 4, False, "ab  "),
        ("ab", 4, True, "  ab"),
        ("abcdef", 4, False, "abc…"),
        ("温度計", 6, False, "温度計"),
        ("温度計", 4, False, "温 …"),
        ("ab", 0, False, ""),
    ],
)
def test_fit(text: str, width: int, right: bool, shown: str) -> None:
    assert fit(text, width, right=right) == shown


@given(st.text(), st.integers(1, 40), st.booleans())
def test_fit_gives_exactly_the_width(text: str, width: int, right: bool) -> None:
    assert cell_len(fit(printable(text, 100), width, right=right)) == width


@table(
    ("each_second", "shown"),
    [
        (None, "—"),
        (0.0, "0.0/s"),
        (0.44, "0.4/s"),
        (9.96, "10/s"),
        (1_250.3, "1,250/s"),
        (9_999.6, "10.0k/s"),
        (12_449.0, "12.4k/s"),
        (2_500_000.0, "2.5M/s"),
    ],
)
def test_rate(each_second: float | None, shown: str) -> None:
    assert rate(each_second) == shown


@table(
    ("each_second", "shown"),
    [
        (0.44, "0.4/s"),
        (999.4, "999/s"),
        (999.6, "1.0k/s"),
        (9_949.0, "9.9k/s"),
        (16_100.0, "16k/s"),
        (999_600.0, "1.0M/s"),
        (1e12, "9.9M/s"),
    ],
)
def test_brief_rate(each_second: float, shown: str) -> None:
    assert brief_rate(each_second) == shown
    assert len(shown) <= 6


@table(
    ("seconds", "shown"),
    [
        (None, "—"),
        (-3, "0s"),
        (59.9, "59s"),
        (131, "2m 11s"),
        (11_100, "3h 05m"),
        (356_400, "4d 03h"),
        (400 * 86_400, "400d 00h"),
    ],
)
def test_span(seconds: float | None, shown: str) -> None:
    assert span(seconds) == shown


@pytest.mark.parametrize(
    ("octets", "shown"),
    [
        (None, "—"),
        (999, "999 B"),
        (12_345, "12.3 kB"),
        (999_960, "1.0 MB"),
        (1_500_000_000, "1.5 GB"),
        (7 * 10**15, "7,000.0 TB"),
    ],
)
def test_size(octets: int | None, shown: str) -> None:
    assert size(octets) == shown


def test_amount() -> None:
    assert (amount(None), amount(4_912)) == ("—", "4,912")


def test_time_of_day() -> None:
    assert time_of_day(None) == "—"
    assert len(time_of_day(1_763_740_000.9)) == len("HH:MM:SS")


@pytest.mark.parametrize(
    ("values", "width", "bars"),
    [
        ([], 5, ""),
        ([1, 2], 0, ""),
        ([5, 5, 5], 5, "▁▁▁"),
        ([0, 1, 2, 3, 4, 5, 6], 7, "▁▂▃▄▅▆▇"),
        ([9, 9, 0, 6], 2, "▁▇"),
        ([-1e300, 1e300], 2, "▁▇"),
    ],
)
def test_sparkline(values: list[float], width: int, bars: str) -> None:
    assert sparkline(values, width) == bars


@given(st.lists(st.floats(-1e300, 1e300)), st.integers(0, 40))
def test_sparkline_never_raises(values: list[float], width: int) -> None:
    assert len(sparkline(values, width)) == min(len(values), width)


@pytest.mark.parametrize(
    ("days", "shown"),
    [(None, "—"), (0, "—"), (11, "11 days"), (240, "8 months"), (4383, "12 years")],
)
def test_long_span(days: int | None, shown: str) -> None:
    assert long_span(days) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (None, "—"),
        (40, "40 s"),
        (11_160, "3.1 h"),
        (812_160, "9.4 days"),
        (10 * 365 * 86_400, "over 10 years"),
    ],
)
def test_outage(seconds: int | None, shown: str) -> None:
    assert outage(seconds) == shown

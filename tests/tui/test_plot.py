import math

from hypothesis import given
from hypothesis import strategies as st

from tui.line import plain, width
from tui.plot import course, plot, resampled, scale, short, stretched

VALUES = st.lists(st.none() | st.floats(-1e12, 1e12), max_size=300)


@given(VALUES, st.integers(9, 90), st.integers(1, 20), st.booleans())
def test_a_plot_has_its_size(
    values: list[float | None], cells: int, height: int, zero: bool
) -> None:
    found = plot(values, cells, height, 0.0, 600.0, zero=zero)
    assert len(found) == height
    assert all(width(each) <= cells for each in found)


@given(VALUES, st.booleans())
def test_an_axis_holds_its_values(values: list[float | None], zero: bool) -> None:
    low, high = scale(values, zero=zero)
    assert low < high
    for value in values:
        slack = 1e-6 * (high - low)
        assert value is None or low - slack <= value <= high + slack


def test_a_rising_line() -> None:
    rows = course([0, 1, 2, 3, 4, 5, 6, 7], 4, 2, 0, 7)
    assert rows == ["  ⣠⠞", "⣠⠞⠁ "]


def test_a_gap_where_nothing_is_known() -> None:
    rows = course([0, None, None, None, None, None, 0, 0], 4, 1, 0, 1)
    assert rows == ["⡀  ⣀"]
    assert course([math.inf, math.nan], 1, 1, 0, 1) == [" "]


def test_numbers_of_an_axis() -> None:
    found = [short(each) for each in (0, 0.25, 12.44, 812, 4_912, 12_345, 1.2e6, 5e9, -4_912)]
    assert found == ["0", "0.25", "12.4", "812", "4.9k", "12k", "1.2M", "5.0G", "-4.9k"]


def test_times_and_labels() -> None:
    found = plot([1, 2, 3], 60, 6, 0.0, 10_800.0)
    assert plain(found[0]).lstrip().startswith("3┤")
    assert plain(found[-2]).lstrip().startswith("0┤")
    assert plain(found[-1]).count(":") == 3


def test_more_and_fewer_values() -> None:
    assert resampled([1, 3, None, None], 2) == [2, None]
    assert resampled([1], 3) == [None, None, 1]
    assert resampled([1], 0) == []
    assert stretched([1, 2], 4) == [1, 1, 2, 2]
    assert stretched([], 4) == []

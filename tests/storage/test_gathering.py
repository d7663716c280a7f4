"""How changes are announced, and how many rows become few statements."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.storage.gathering import Gathering, runs
from tests.support.sqlite_disk import SqliteDisk


@given(st.sets(st.integers(1, 60)))
def test_runs_hold_exactly_the_numbers(numbers: set[int]) -> None:
    found = runs(sorted(numbers, reverse=True))
    assert [each for first, last in found for each in range(first, last + 1)] == sorted(numbers)
    assert all(last + 1 < first for (_, last), (first, _) in pairwise(found))


def test_a_mark_makes_due_what_was_put_off() -> None:
    disk = SqliteDisk()
    gathering = Gathering(disk)
    assert gathering.mark() == 0
    assert disk.wanted is None  # there is nothing to wait for
    gathering.put_off()
    assert gathering.mark() == 1
    assert disk.wanted == 0.0


@pytest.mark.parametrize(
    ("within", "first"), [(0.0, 0.0025), (0.004, 0.0025), (0.005, 0.0025), (0.05, 0.0475)]
)
def test_what_is_lent_is_written_within_its_window(within: float, first: float) -> None:
    disk = SqliteDisk()
    gathering = Gathering(disk)
    gathering.lend(within)
    assert disk.wanted == pytest.approx(first)
    assert gathering.lent_mark == 2
    disk.commit()
    gathering.committed(1)
    assert disk.wanted == pytest.approx(0.0025)  # together no more than the window, or the delay
    disk.commit()
    gathering.committed(2)
    assert disk.wanted is None


def test_a_mark_of_a_batch_that_is_on_its_way_makes_nothing_due() -> None:
    disk = SqliteDisk()
    gathering = Gathering(disk)
    gathering.firm()
    disk.wanted, disk.batch = None, 2  # closed, and not on disk yet
    disk.rows.append(("", ()))
    disk.mark = lambda: 1  # type: ignore[method-assign]  # as the writer says then
    assert gathering.mark() == 1
    assert disk.wanted is None


def test_what_is_lent_again_is_announced_if_it_is_due_earlier() -> None:
    disk = SqliteDisk()
    gathering = Gathering(disk)
    wanted: list[Any] = []
    for within in (0.05, 0.06, 0.05, 0.01, 0.02):
        disk.wanted = None
        gathering.lend(within)
        wanted.append(disk.wanted)
    assert wanted == [pytest.approx(0.0475), None, None, pytest.approx(0.0075), None]
    disk.commit()
    gathering.lend(0.06)
    assert disk.wanted == pytest.approx(0.0575)
    assert (gathering.lent, gathering.lent_mark) == (6, 3)

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.storage.outbox.ranges import ranges_of


@pytest.mark.parametrize(
    ("identifiers", "ranges"),
    [
        ({7}, [(7, 7)]),
        ({3, 1, 2}, [(1, 3)]),
        ({1, 3}, [(1, 1), (3, 3)]),
        ({9, 10, 4, 5, 6, 1}, [(1, 1), (4, 6), (9, 10)]),
    ],
)
def test_ids_that_follow_each_other_are_one_range(
    identifiers: set[int], ranges: list[tuple[int, int]]
) -> None:
    assert ranges_of(identifiers) == ranges


@given(st.sets(st.integers(1, 60), min_size=1))
def test_ranges_hold_these_ids_and_no_others(identifiers: set[int]) -> None:
    ranges = ranges_of(identifiers)
    held = [number for first, last in ranges for number in range(first, last + 1)]
    assert held == sorted(identifiers)
    assert all(before[1] + 1 < after[0] for before, after in pairwise(ranges))

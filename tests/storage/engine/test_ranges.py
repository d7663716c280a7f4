"""Numbers as ranges, and ranges that follow each other as one."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from gateway.storage.engine.many_rows import joined, ranges_of


@given(st.sets(st.integers(1, 60)))
def test_ranges_hold_exactly_the_numbers(numbers: set[int]) -> None:
    found = ranges_of(numbers)
    assert [each for first, last in found for each in range(first, last + 1)] == sorted(numbers)
    assert all(last + 1 < first for (_, last), (first, _) in pairwise(found))


def test_ranges_that_follow_upon_each_other_are_one() -> None:
    assert joined([(11, 20), (1, 10), (22, 22)]) == [(1, 20), (22, 22)]

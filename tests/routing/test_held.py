from hypothesis import given
from hypothesis import strategies as st

from gateway.routing.held import Held, count, excluding, gather, holds, including, size


@given(st.lists(st.integers(0, 5)))
def test_it_holds_what_a_set_does(numbers: list[int]) -> None:
    held: Held = None
    expected: set[int] = set()
    for number in numbers:
        change = excluding if number in expected else including
        held = change(held, number)
        expected ^= {number}
        found: list[int] = []
        gather(held, found)
        assert sorted(found) == sorted(expected)
        assert count(held) == len(expected)
        assert all(holds(held, each) == (each in expected) for each in range(6))
        assert isinstance(held, set) == (len(expected) > 1)
        assert bool(size(held)) == bool(expected)

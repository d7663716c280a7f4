from hypothesis import given
from hypothesis import strategies as st

from gateway.routing.filters.held import Held, count, excluding, gather, including


@given(st.lists(st.integers(0, 5)))
def test_it_holds_what_a_set_does(numbers: list[int]) -> None:
    held: Held[int] = None
    expected: set[int] = set()
    for number in numbers:
        change = excluding if number in expected else including
        held = change(held, number)
        expected ^= {number}
        found: list[int] = []
        gather(held, found)
        assert sorted(found) == sorted(expected)
        assert count(held) == len(expected)
        assert isinstance(held, set) == (len(expected) > 1)

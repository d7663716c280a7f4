import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.routing.held_numbers import LIST, HeldNumbers


def gathered(held: HeldNumbers, word: int) -> list[int]:
    found: list[int] = []
    held.gather(word, found)
    return found


@given(st.lists(st.integers(0, 20)))
def test_words_hold_what_a_set_would(numbers: list[int]) -> None:
    held, word, expected = HeldNumbers(), 0, set[int]()
    for number in numbers:
        assert held.holds(word, number) == (number in expected)
        change = held.excluding if number in expected else held.including
        word = change(word, number)
        expected ^= {number}
        assert gathered(held, word) == sorted(expected)
        assert (word == 0, word < LIST) == (not expected, len(expected) < 2)
    for number in sorted(expected):
        word = held.excluding(word, number)
    assert (word, held.memory()) == (0, 0)


def test_places_of_lists_are_used_again() -> None:
    held = HeldNumbers()
    words = [held.including(held.including(0, number), number + 1) for number in (0, 10, 20)]
    memory = held.memory()
    assert held.excluding(words[1], 10) == 11 + 1
    with pytest.raises(KeyError):
        gathered(held, words[1])
    words[1] = held.including(held.including(0, 30), 31)
    assert [gathered(held, word) for word in words] == [[0, 1], [30, 31], [20, 21]]
    assert held.memory() == memory


@given(st.lists(st.integers(0, 20), unique=True), st.integers(0, 21))
def test_the_first_number_from_another_on_is_found(numbers: list[int], least: int) -> None:
    held, word = HeldNumbers(), 0
    for number in numbers:
        word = held.including(word, number)
    assert held.first(word, least) == min((each for each in numbers if each >= least), default=-1)
    assert held.count(word) == len(numbers)

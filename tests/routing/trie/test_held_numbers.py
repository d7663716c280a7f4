import tracemalloc
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.routing.trie.held_numbers import LIST, HeldNumbers


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


def test_nothing_is_held() -> None:
    held = HeldNumbers()
    assert (held.first(0, 0), held.count(0), gathered(held, 0)) == (-1, 0, [])


def test_places_of_lists_are_used_again() -> None:
    held = HeldNumbers()
    words = [held.including(held.including(0, number), number + 1) for number in (0, 10, 20)]
    memory = held.memory()
    assert held.excluding(words[1], 10) == 11 + 1
    assert gathered(held, words[1]) == []
    words[1] = held.including(held.including(0, 30), 31)
    assert [gathered(held, word) for word in words] == [[0, 1], [30, 31], [20, 21]]
    assert held.memory() == memory


@pytest.fixture
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


def taken() -> int:
    return tracemalloc.get_traced_memory()[0]


@pytest.mark.uncovered
@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("left", [10_000, 2_000, 100])
def test_a_list_that_gets_shorter_gives_its_room_back(left: int) -> None:
    before = taken()
    held, word = HeldNumbers(), 0
    for number in range(20_000):
        word = held.including(word, number)
    for number in range(19_999, left - 1, -1):
        word = held.excluding(word, number)
    assert held.count(word) == left
    assert taken() - before < 1.3 * held.memory() + 5_000  # of the test's own, and coverage's


@pytest.mark.uncovered
@pytest.mark.usefixtures("traced")
def test_memory_counts_the_places_of_lists_that_are_gone() -> None:
    before = taken()
    held = HeldNumbers()
    words = [held.including(held.including(0, number), number + 1) for number in range(10_000)]
    for number, word in enumerate(words[1:], 1):
        held.excluding(word, number)
    del words
    assert taken() - before < 1.3 * held.memory() + 5_000


@given(st.lists(st.integers(0, 20), unique=True), st.integers(0, 21))
def test_the_first_number_from_another_on_is_found(numbers: list[int], least: int) -> None:
    held, word = HeldNumbers(), 0
    for number in numbers:
        word = held.including(word, number)
    assert held.first(word, least) == min((each for each in numbers if each >= least), default=-1)
    assert held.count(word) == len(numbers)

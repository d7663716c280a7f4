import gc
import itertools
import time
from collections.abc import Iterator

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from gateway.routing.trie.topic_trie import TooManyNodes, TopicTrie
from tests.support.broker.topics import TOPIC_FILTERS, TOPICS
from tests.support.naive.matcher import matches

DEEPEST = "/" * 65_535
"""The longest string MQTT can carry, all of it empty levels."""


def test_adding_twice_counts_once() -> None:
    trie = TopicTrie()
    for topic_filter in ("a", "a/#"):
        trie.add(topic_filter, 1 if topic_filter == "a" else 2)
        trie.add(topic_filter, 1 if topic_filter == "a" else 2)
    assert len(trie) == 2
    assert sorted(trie.match("a")) == [1, 2]


def test_what_is_not_there_is_not_discarded() -> None:
    trie = TopicTrie()
    trie.add("a/b", 1)
    assert not any(trie.discard(topic_filter, 1) for topic_filter in ("a", "b", "a/b/c", "+/b"))
    assert not trie.discard("a/b", 2)
    assert trie.match("a/b") == [1]


def test_a_match_is_a_list_of_its_own() -> None:
    trie = TopicTrie()
    for subscription in range(5):
        trie.add("a", subscription)
    for subscription in trie.match("a"):
        assert trie.discard("a", subscription)
        trie.add("a", subscription + 10)
    assert sorted(trie.match("a")) == [10, 11, 12, 13, 14]


def test_what_is_discarded_gives_its_memory_back() -> None:
    trie = TopicTrie()
    empty = trie.memory()
    filters = [f"site/{site}/device/{site % 7}/+/{'#' if site % 2 else 'x'}" for site in range(200)]
    for number, topic_filter in enumerate(filters):
        trie.add(topic_filter, 1_000 + number)
    assert trie.memory() > empty + 200 * 20
    for number, topic_filter in enumerate(filters):
        assert trie.discard(topic_filter, 1_000 + number)
    assert trie.memory() == empty


def test_memory_counts_every_number_of_a_crowded_filter() -> None:
    trie = TopicTrie()
    trie.add("a", 1_000)
    alone = trie.memory()
    for number in range(1_001, 2_000):
        trie.add("a", number)
    assert 999 * 4 <= trie.memory() - alone < 999 * 8


@pytest.mark.uncovered
@pytest.mark.parametrize("topic_filter", [DEEPEST, DEEPEST[:-1] + "#", "+" + DEEPEST[:-1]])
def test_the_deepest_topic_costs_in_proportion_to_its_length(topic_filter: str) -> None:
    trie = TopicTrie()
    before = time.process_time()
    trie.add(topic_filter, 1)
    assert trie.match(DEEPEST if topic_filter == DEEPEST else DEEPEST[:-1]) == [1]
    trie.memory()
    assert trie.discard(topic_filter, 1)
    trie.add(topic_filter, 1)
    del trie
    gc.collect()
    # 65,536 levels at some microseconds each; a cost that is quadratic takes minutes.
    assert time.process_time() - before < 30


@pytest.mark.uncovered
def test_wildcards_at_every_level_don_t_multiply_the_work() -> None:
    trie = TopicTrie()
    for number in range(200):
        trie.add("/".join(["+"] * number + ["a"] * (200 - number)), number)
    before = time.process_time()
    assert sorted(trie.match("/".join(["a"] * 200))) == list(range(200))
    assert time.process_time() - before < 1  # 20,000 nodes, each visited once


def overlapping(levels: int) -> Iterator[str]:
    """Every topic filter for the topic of so many levels `a` that has an `a` or a `+` in each."""
    return map("/".join, itertools.product("a+", repeat=levels))


@pytest.mark.uncovered
def test_a_topic_of_fourteen_levels_is_matched_whatever_is_subscribed_to() -> None:
    trie = TopicTrie()
    filters = [
        *(f"{each}/#" for levels in range(1, 15) for each in overlapping(levels)),
        "#",
        *overlapping(14),
    ]
    for number, topic_filter in enumerate(filters):
        trie.add(topic_filter, number)
    assert sorted(trie.match("/".join("a" * 14))) == list(range(len(filters)))


@pytest.mark.uncovered
@pytest.mark.parametrize("ending", ["", "/another"])
def test_filters_made_for_it_cannot_hold_a_match_up(ending: str) -> None:
    trie = TopicTrie()
    for number, topic_filter in enumerate(overlapping(15)):
        trie.add(topic_filter + ending, number)
    before = time.process_time()
    with pytest.raises(TooManyNodes):
        trie.match("/".join("a" * 15) + "/b")
    assert time.process_time() - before < 1  # of 65,534 nodes a half
    assert trie.match("b") == []


class TrieAgainstNaiveMatcher(RuleBasedStateMachine):
    """The trie and a plain dict of number to filter say the same after any history."""

    added = Bundle("added")

    def __init__(self) -> None:
        super().__init__()
        self.trie = TopicTrie()
        self.filters: dict[int, str] = {}
        self.empty = self.trie.memory()

    @rule(target=added, topic_filter=TOPIC_FILTERS, crowd=st.integers(1, 3))
    def add(self, topic_filter: str, crowd: int) -> object:
        numbers = range(next_number := max(self.filters, default=-1) + 1, next_number + crowd)
        for number in numbers:
            self.trie.add(topic_filter, number)
            self.filters[number] = topic_filter
        return multiple(*((topic_filter, number) for number in numbers))

    @rule(entry=consumes(added))
    def discard(self, entry: tuple[str, int]) -> None:
        topic_filter, number = entry
        was_there = self.filters.get(number) == topic_filter
        assert self.trie.discard(topic_filter, number) == was_there
        if was_there:
            del self.filters[number]

    @rule(topic_filter=TOPIC_FILTERS, number=st.integers(0, 9))
    def discard_what_may_be_absent(self, topic_filter: str, number: int) -> None:
        was_there = self.filters.get(number) == topic_filter
        assert self.trie.discard(topic_filter, number) == was_there
        if was_there:
            del self.filters[number]

    @rule(topic=TOPICS)
    def match(self, topic: str) -> None:
        expected = [number for number, held in self.filters.items() if matches(held, topic)]
        assert sorted(self.trie.match(topic)) == expected

    @invariant()
    def counts(self) -> None:
        assert len(self.trie) == len(self.filters)
        assert self.trie.memory() >= self.empty
        assert self.filters or self.trie.memory() == self.empty


TestTrieAgainstNaiveMatcher = pytest.mark.uncovered(TrieAgainstNaiveMatcher.TestCase)

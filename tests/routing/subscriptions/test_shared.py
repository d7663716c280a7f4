from collections import Counter

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from gateway.routing.subscriptions.shared import Group, SharedSubscriptions
from tests.support.broker.topics import TOPICS
from tests.support.naive.matcher import matches


def match(shared: SharedSubscriptions[int], topic: str) -> list[list[int]]:
    """Return the members of each group that matches, after giving each its turn."""
    return [turns(group) for group in shared.groups(topic)]


def turns(group: Group[int] | None) -> list[int]:
    return [] if group is None else [group.members[index] for index in group.take_turns()]


def test_the_members_of_one_group_take_turns_too() -> None:
    shared: SharedSubscriptions[int] = SharedSubscriptions()
    for member in (1, 2):
        shared.add("one", "a/#", member)
    assert match(shared, "a/x") == [[1, 2]]
    assert turns(shared.group("one", "a/#")) == [2, 1]
    assert match(shared, "a/x") == [[1, 2]]
    assert turns(shared.group("two", "a/#")) == turns(shared.group("one", "a/x")) == []


def test_adding_twice_gives_one_turn() -> None:
    shared: SharedSubscriptions[int] = SharedSubscriptions()
    for member in (1, 1, 2):
        shared.add("one", "a", member)
    assert len(shared) == 2
    assert match(shared, "a") == [[1, 2]]


def test_who_is_no_member_is_not_discarded() -> None:
    shared: SharedSubscriptions[int] = SharedSubscriptions()
    shared.add("one", "a", 1)
    for name, topic_filter, member in (("one", "a", 2), ("two", "a", 1), ("one", "b", 1)):
        assert not shared.discard(name, topic_filter, member)
    assert (len(shared), match(shared, "a")) == (1, [[1]])


def test_a_group_that_is_gone_leaves_its_place_to_another() -> None:
    shared: SharedSubscriptions[int] = SharedSubscriptions()
    shared.add("one", "a", 1)
    shared.discard("one", "a", 1)
    shared.add("two", "b", 2)
    shared.add("three", "c", 3)
    assert (match(shared, "a"), match(shared, "b"), match(shared, "c")) == ([], [[2]], [[3]])
    for name, topic_filter, member in (("two", "b", 2), ("three", "c", 3)):
        assert shared.discard(name, topic_filter, member)
    assert shared.memory() == SharedSubscriptions().memory()


def test_who_leaves_takes_no_turn_from_the_others() -> None:
    shared: SharedSubscriptions[int] = SharedSubscriptions()
    for member in (1, 2, 3, 4):
        shared.add("one", "a", member)
    assert match(shared, "a")[0][0] == 1
    shared.discard("one", "a", 1)
    assert match(shared, "a")[0][0] == 2
    shared.discard("one", "a", 3)
    assert match(shared, "a")[0][0] == 4
    shared.discard("one", "a", 4)
    assert match(shared, "a")[0][0] == 2


def test_the_turn_goes_round_when_its_last_holder_leaves() -> None:
    shared: SharedSubscriptions[int] = SharedSubscriptions()
    for member in (1, 2):
        shared.add("one", "a", member)
    assert match(shared, "a")[0][0] == 1
    shared.discard("one", "a", 2)
    assert [match(shared, "a") for _ in range(2)] == [[[1]], [[1]]]


def test_who_joins_in_place_of_the_last_holder_has_the_turn() -> None:
    shared: SharedSubscriptions[int] = SharedSubscriptions()
    for member in (1, 2):
        shared.add("one", "a", member)
    assert match(shared, "a")[0][0] == 1
    shared.discard("one", "a", 2)
    shared.add("one", "a", 3)
    assert [match(shared, "a")[0][0] for _ in range(3)] == [3, 1, 3]


GROUPS = st.tuples(st.sampled_from("xy"), st.sampled_from(["a", "a/b", "a/#", "+", "+/b", "#"]))


class SharedAgainstDict(RuleBasedStateMachine):
    """Members are those of a plain dict of lists; turns are even while nobody comes or goes."""

    def __init__(self) -> None:
        super().__init__()
        self.shared: SharedSubscriptions[int] = SharedSubscriptions()
        self.groups: dict[tuple[str, str], list[int]] = {}
        self.last = 0

    @rule(group=GROUPS)
    def add(self, group: tuple[str, str]) -> None:
        self.last += 1
        self.shared.add(*group, self.last)
        self.groups.setdefault(group, []).append(self.last)

    @rule(group=GROUPS, place=st.integers(0, 3))
    def discard(self, group: tuple[str, str], place: int) -> None:
        members = self.groups.get(group, [])
        member = members[place] if place < len(members) else 0
        assert self.shared.discard(*group, member) == (member in members)
        if member in members:
            members.remove(member)

    @rule(topic=TOPICS)
    def match(self, topic: str) -> None:
        expected = [
            members
            for (_, topic_filter), members in self.groups.items()
            if members and matches(topic_filter, topic)
        ]
        found = match(self.shared, topic)
        assert sorted(sorted(members) for members in found) == sorted(expected)

    @rule(group=GROUPS, rounds=st.integers(1, 3))
    def go_round(self, group: tuple[str, str], rounds: int) -> None:
        members = self.groups.get(group, [])
        topic = group[1].replace("#", "z").replace("+", "z")
        chosen = Counter(
            found[0]
            for _ in range(rounds * len(members))
            for found in match(self.shared, topic)
            if sorted(found) == members
        )
        assert all(chosen[member] == rounds for member in members)

    @invariant()
    def counts(self) -> None:
        assert len(self.shared) == sum(map(len, self.groups.values()))


TestSharedAgainstDict = pytest.mark.uncovered(SharedAgainstDict.TestCase)

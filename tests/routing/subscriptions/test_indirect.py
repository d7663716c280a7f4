from collections import Counter

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from gateway.mqtt.message import Message
from gateway.routing.filters.filter_index import IndexEntry
from gateway.routing.subscriptions.indirect import IndirectSubscriptions
from gateway.routing.subscriptions.subscription import Group, Subscription
from gateway.where.compile import Where, compile_where
from tests.support.broker.subscribers import Someone
from tests.support.broker.topics import TOPICS
from tests.support.naive.matcher import matches

TWO = compile_where("a = 1 AND b > 'x'")
ONE = compile_where("a = 1")
OTHER = compile_where("b BETWEEN 0 AND 2")


class Table:
    """Indirect subscriptions of subscribers that are numbers."""

    def __init__(self) -> None:
        self.table = IndirectSubscriptions()
        self.places: dict[tuple[str, int], int] = {}

    def add(self, topic_filter: str, subscriber: int, where: Where | None = None) -> Subscription:
        node = self.table.reach(topic_filter)
        one = Subscription(Someone(str(subscriber)), topic_filter, 0, where=where)
        self.table.put(node, subscriber, one)
        self.places[topic_filter, subscriber] = node
        assert self.table.node(subscriber, topic_filter) == node
        assert self.table.get(node, subscriber) is one
        return one

    def discard(self, topic_filter: str, subscriber: int) -> None:
        self.table.remove(self.places.pop((topic_filter, subscriber)), subscriber)
        assert self.table.node(subscriber, topic_filter) == 0

    def found(self, message: Message) -> set[Subscription]:
        entries: list[IndexEntry] = []
        for index in self.table.match(message.topic)[0]:
            index.find(message, entries)
        subscriptions: set[Subscription] = set()
        for entry in entries:
            held = entry.subscriptions
            subscriptions |= held if isinstance(held, set) else {held} if held else set()
        return subscriptions

    def match(self, topic: str) -> list[list[int]]:
        """Return the members of each group that matches, after giving each its turn."""
        return [turns(group) for group in self.table.match(topic)[1]]


def turns(group: Group | None) -> list[int]:
    if group is None:
        return []
    return [int(group.members[index].subscriber.client_id) for index in group.rotate()]


def test_the_last_subscription_takes_the_index_with_it() -> None:
    table = Table()
    places = [("a/+", ONE), ("a/+", TWO), ("a/#", ONE), ("a/+", OTHER), ("a/+", ONE)]
    memory, held = [table.table.memory()], []
    for number, (topic_filter, where) in enumerate(places):
        held.append(table.add(topic_filter, number, where))
        memory.append(table.table.memory())
    assert memory == sorted(set(memory))
    assert memory[5] - memory[4] < memory[4] - memory[3]  # the expression is there
    message = Message("a/x", b'{"a": 1, "b": 1}')
    assert table.found(message) == set(held)
    for number, (topic_filter, _) in enumerate(places):
        assert table.table.uses(places[number][1])
        table.discard(topic_filter, number)
        assert table.found(message) == set(held[number + 1 :])
    assert table.table.memory() == 0
    assert table.table.match(message.topic) == ((), ())
    assert not table.table.uses(ONE)


def test_a_topic_filter_that_had_an_index_can_have_another() -> None:
    table = Table()
    for _ in range(2):
        one = table.add("a", 1, ONE)
        assert table.found(Message("a", b'{"a": 1.0}')) == {one}
        table.discard("a", 1)


def test_the_members_of_one_group_take_turns_too() -> None:
    table = Table()
    for member in (1, 2):
        table.add("$share/one/a/#", member)
    assert table.match("a/x") == [[1, 2]]
    assert turns(table.table.group("$share/one/a/#")) == [2, 1]
    assert table.match("a/x") == [[1, 2]]
    assert turns(table.table.group("$share/two/a/#")) == []
    assert turns(table.table.group("$share/one/a/x")) == []


def test_a_group_that_is_gone_leaves_its_place_to_another() -> None:
    table = Table()
    table.add("$share/one/a", 1)
    table.add("$share/one/b", 1)
    table.discard("$share/one/a", 1)
    table.add("$share/two/b", 2)
    table.add("$share/three/c", 3)
    assert [table.match(topic) for topic in "ac"] == [[], [[3]]]
    assert sorted(table.match("b")) == [[1], [2]]
    for topic_filter, member in [*table.places]:
        table.discard(topic_filter, member)
    assert table.table.memory() == 0


def test_who_leaves_takes_no_turn_from_the_others() -> None:
    table = Table()
    for member in (1, 2, 3, 4):
        table.add("$share/one/a", member)
    for gone, first in ((0, 1), (1, 2), (3, 4), (4, 2)):
        if gone:
            table.discard("$share/one/a", gone)
        assert table.match("a")[0][0] == first


def test_the_turn_goes_round_when_its_last_holder_leaves() -> None:
    table = Table()
    for member in (1, 2):
        table.add("$share/one/a", member)
    assert table.match("a")[0][0] == 1
    table.discard("$share/one/a", 2)
    assert [table.match("a") for _ in range(2)] == [[[1]], [[1]]]


def test_who_joins_in_place_of_the_last_holder_has_the_turn() -> None:
    table = Table()
    for member in (1, 2):
        table.add("$share/one/a", member)
    assert table.match("a")[0][0] == 1
    table.discard("$share/one/a", 2)
    table.add("$share/one/a", 3)
    assert [table.match("a")[0][0] for _ in range(3)] == [3, 1, 3]


GROUPS = st.tuples(st.sampled_from("xy"), st.sampled_from(["a", "a/b", "a/#", "+", "+/b", "#"]))


class SharedAgainstDict(RuleBasedStateMachine):
    """Members are those of a plain dict of lists; turns are even while nobody comes or goes."""

    def __init__(self) -> None:
        super().__init__()
        self.table = Table()
        self.groups: dict[tuple[str, str], list[int]] = {}
        self.last = 0

    @rule(group=GROUPS)
    def add(self, group: tuple[str, str]) -> None:
        self.last += 1
        self.table.add("$share/{}/{}".format(*group), self.last)
        self.groups.setdefault(group, []).append(self.last)

    @rule(group=GROUPS, place=st.integers(0, 3))
    def discard(self, group: tuple[str, str], place: int) -> None:
        members = self.groups.get(group, [])
        if place < len(members):
            self.table.discard("$share/{}/{}".format(*group), members.pop(place))

    @rule(topic=TOPICS)
    def match(self, topic: str) -> None:
        expected = [
            members
            for (_, topic_filter), members in self.groups.items()
            if members and matches(topic_filter, topic)
        ]
        found = self.table.match(topic)
        assert sorted(sorted(members) for members in found) == sorted(expected)

    @rule(group=GROUPS, rounds=st.integers(1, 3))
    def go_round(self, group: tuple[str, str], rounds: int) -> None:
        members = self.groups.get(group, [])
        topic = group[1].replace("#", "z").replace("+", "z")
        chosen = Counter(
            found[0]
            for _ in range(rounds * len(members))
            for found in self.table.match(topic)
            if sorted(found) == members
        )
        assert all(chosen[member] == rounds for member in members)

    @invariant()
    def counts(self) -> None:
        assert self.table.table.shared == sum(map(len, self.groups.values()))


TestSharedAgainstDict = pytest.mark.uncovered(SharedAgainstDict.TestCase)

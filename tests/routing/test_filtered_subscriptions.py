from collections import Counter

from hypothesis import assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from gateway.routing.budget import Budget
from gateway.routing.filtered_subscriptions import FilteredSubscriptions
from gateway.routing.operand_index import IndexEntry
from gateway.routing.router import Router
from gateway.routing.subscription import Subscription
from gateway.routing.where.compile import compile_where
from gateway.routing.where.message import Message
from tests.support.naive_matcher import matches
from tests.support.routing import destinations
from tests.support.subscribers import Someone
from tests.support.where_strategies import (
    colliding_filters,
    colliding_messages,
    conjunctions,
    expressions,
    messages,
)
from tests.support.where_walker import walk

TWO = compile_where("a = 1 AND b > 'x'")
ONE = compile_where("a = 1")
OTHER = compile_where("b BETWEEN 0 AND 2")


def found(filtered: FilteredSubscriptions, message: Message) -> set[Subscription]:
    entries: list[IndexEntry] = []
    for index in filtered.indexes(message.topic):
        index.find(message, entries)
    subscriptions: set[Subscription] = set()
    for entry in entries:
        held = entry.subscriptions
        subscriptions |= held if isinstance(held, set) else {held} if held else set()
    return subscriptions


def test_the_last_subscription_takes_the_index_with_it() -> None:
    filtered = FilteredSubscriptions()
    empty = filtered.memory()
    places = [("a/+", ONE), ("a/+", TWO), ("a/#", ONE), ("a/+", OTHER), ("a/+", ONE)]
    held = [Subscription(Someone(), topic_filter, 0, where=where) for topic_filter, where in places]
    memory = [empty]
    for (topic_filter, where), one in zip(places, held, strict=True):
        filtered.add(topic_filter, where, one)
        memory.append(filtered.memory())
    assert memory[:5] == sorted(set(memory[:5]))
    assert memory[5] == memory[4]  # the expression is there
    message = Message("a/x", b'{"a": 1, "b": 1}')
    assert found(filtered, message) == set(held)
    for number, (topic_filter, where) in enumerate(places):
        filtered.discard(topic_filter, where, held[number])
        assert found(filtered, message) == set(held[number + 1 :])
    assert filtered.memory() == empty
    assert not filtered.indexes(message.topic)


def test_a_topic_filter_that_had_an_index_can_have_another() -> None:
    filtered, one = FilteredSubscriptions(), Subscription(Someone(), "a", 0, where=ONE)
    for _ in range(2):
        filtered.add("a", ONE, one)
        assert found(filtered, Message("a", b'{"a": 1.0}')) == {one}
        filtered.discard("a", ONE, one)


class RouterAgainstEvaluation(RuleBasedStateMachine):
    """The router names whom every expression, evaluated for itself, names."""

    def __init__(self) -> None:
        super().__init__()
        self.budget = Budget()
        self.router = Router(self.budget)
        self.held: dict[int, Subscription] = {}
        self.subscribers = [Someone("a"), Someone("abc")]

    @rule(
        subscriber=st.integers(0, 1),
        topic_filter=st.sampled_from(["#", "#", "#", "a/#", "+/b", "sensor/+/temp", "$SYS/#"]),
        text=colliding_filters() | colliding_filters() | conjunctions() | expressions(),
        no_local=st.booleans(),
    )
    def add(self, subscriber: int, topic_filter: str, text: str, no_local: bool) -> None:
        subscription = Subscription(
            self.subscribers[subscriber],
            topic_filter,
            2,
            no_local=no_local,
            identifier=len(self.held) + 1,
            where=compile_where(text),
        )
        self.held.pop(self.router.find(subscription.subscriber, topic_filter) or 0, None)
        self.held[self.router.add(subscription)] = subscription

    @rule(data=st.data())
    def discard(self, data: st.DataObject) -> None:
        assume(self.held)
        number = data.draw(st.sampled_from(sorted(self.held)))
        self.router.discard(number)
        del self.held[number]

    @rule(message=colliding_messages() | colliding_messages() | messages())
    def route(self, message: Message) -> None:
        asked, passed_before = self.budget.evaluated, self.budget.passed
        expected: dict[str, Counter[int]] = {}
        passed = 0
        for one in self.held.values():
            name = one.subscriber.client_id
            if one.no_local and name == message.client_id:
                continue
            text = one.where.text if one.where else ""
            if matches(one.topic_filter, message.topic) and walk(text, message):
                expected.setdefault(name, Counter())[one.identifier or 0] += 1
                passed += 1
        found = destinations(self.router, message)
        assert message._part_values is None
        assert {one.subscriber.client_id: Counter(one.identifiers) for one in found} == expected
        assert len(found) == len(expected)
        evaluated = self.budget.evaluated - asked
        assert passed <= evaluated <= len(self.held)
        assert self.budget.passed == passed_before + passed

    @invariant()
    def nothing_is_left_of_nothing(self) -> None:
        assert len(self.router) == len(self.held)
        assert bool(self.router.bytes) == bool(self.held)


TestRouterAgainstEvaluation = RouterAgainstEvaluation.TestCase
TestRouterAgainstEvaluation.settings = settings(max_examples=60, stateful_step_count=40)

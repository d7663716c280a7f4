from collections import Counter

from hypothesis import assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from gateway.routing.budget import Budget
from gateway.routing.indexed_filters import IndexedFilters, candidates
from gateway.routing.router import Router
from gateway.routing.subscription import Subscription
from gateway.routing.where.compile import compile_where
from gateway.routing.where.equalities import equalities
from gateway.routing.where.message import Message
from tests.support.naive_matcher import matches
from tests.support.subscribers import Someone
from tests.support.where_strategies import (
    colliding_filters,
    colliding_messages,
    conjunctions,
    expressions,
    messages,
)

TWO = equalities(compile_where("a = 1 AND b = 'x'").expression)
ONE = equalities(compile_where("a = 1").expression)


def test_the_last_subscription_takes_the_index_with_it() -> None:
    indexed = IndexedFilters()
    empty = indexed.memory()
    places = [("a/+", ONE), ("a/+", TWO), ("a/#", ONE), ("a/+", ONE)]
    for number, (topic_filter, wanted) in enumerate(places):
        indexed.add(topic_filter, wanted, number)
    assert (indexed.indexes, indexed.fields) == (2, 3)
    message = Message("a/x", b'{"a": 1, "b": "x"}')
    assert sorted(candidates(indexed.indexes_of(message.topic), message)) == [0, 1, 2, 3]
    for number, (topic_filter, wanted) in enumerate(places):
        indexed.discard(topic_filter, wanted, number)
        assert sorted(candidates(indexed.indexes_of(message.topic), message)) == list(
            range(number + 1, 4)
        )
    assert (indexed.indexes, indexed.fields, indexed.memory()) == (0, 0, empty)


def test_a_topic_filter_that_had_an_index_can_have_another() -> None:
    indexed = IndexedFilters()
    for _ in range(2):
        indexed.add("a", ONE, 7)
        assert candidates(indexed.indexes_of("a"), Message("a", b'{"a": 1.0}')) == [7]
        indexed.discard("a", ONE, 7)


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
        asked = self.budget.evaluated
        expected: dict[str, Counter[int]] = {}
        passed = 0
        for one in self.held.values():
            name = one.subscriber.client_id
            if one.no_local and name == message.client_id:
                continue
            if one.where and matches(one.topic_filter, message.topic) and one.where.passes(message):
                expected.setdefault(name, Counter())[one.identifier or 0] += 1
                passed += 1
        found = self.router.recipients(message)
        assert {one.subscriber.client_id: Counter(one.identifiers) for one in found} == expected
        assert len(found) == len(expected)
        evaluated = self.budget.evaluated - asked
        assert passed <= evaluated <= len(self.held)

    @invariant()
    def nothing_is_left_of_nothing(self) -> None:
        assert len(self.router) == len(self.held)
        assert bool(self.router.bytes) == bool(self.held)


TestRouterAgainstEvaluation = RouterAgainstEvaluation.TestCase
TestRouterAgainstEvaluation.settings = settings(max_examples=60, stateful_step_count=40)

"""A router, against a list of subscriptions."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from gateway.mqtt.message import Message
from gateway.routing.budget import Budget
from gateway.routing.router import Router
from gateway.routing.subscriptions.subscription import Subscription
from gateway.where.compile import compile_where
from tests.support.broker.routing import destinations
from tests.support.broker.subscribers import Someone
from tests.support.broker.topics import TOPIC_FILTERS, TOPICS
from tests.support.naive.matcher import matches
from tests.support.where.strategies import (
    colliding_filters,
    colliding_messages,
    conjunctions,
    expressions,
    messages,
)
from tests.support.where.walker import walk

EVERYONE = [Someone("a"), Someone("abc")]
FILTERS = st.sampled_from(["#", "#", "#", "a/#", "+/b", "sensor/+/temp", "$SYS/#"]) | TOPIC_FILTERS
WHERES = st.none() | colliding_filters() | conjunctions() | expressions()


def said(subscription: Subscription) -> tuple[object, ...]:
    return tuple(getattr(subscription, name) for name in Subscription.__slots__)


class RouterAgainstList(RuleBasedStateMachine):
    """The router names the destinations that the subscriptions name, asked one by one.

    Of the members of a group whose filter passes it names one.
    """

    def __init__(self) -> None:
        super().__init__()
        self.budget = Budget()
        self.router = Router(self.budget)
        self.held: dict[int, Subscription] = {}

    @rule(
        subscriber=st.sampled_from(EVERYONE),
        name=FILTERS,
        share=st.sampled_from(["", "", "", "$share/g/"]),
        qos=st.integers(0, 2),
        text=WHERES,
        options=st.tuples(st.booleans(), st.booleans()),
        identifier=st.sampled_from([None, 1, 268_435_455]),
    )
    def add(
        self,
        subscriber: Someone,
        name: str,
        share: str,
        qos: int,
        text: str | None,
        options: tuple[bool, bool],
        identifier: int | None,
    ) -> None:
        no_local, retain_as_published = options
        subscription = Subscription(
            subscriber,
            share + name,
            qos,
            no_local=no_local and not share,
            retain_as_published=retain_as_published,
            identifier=identifier,
            where=None if text is None else compile_where(text),
        )
        before = [n for n in self.of(subscriber) if self.held[n].topic_filter == share + name]
        assert self.router.find(subscriber, share + name) == (before[0] if before else None)
        for number in before:
            del self.held[number]
        number = self.router.add(subscription)
        assert number not in self.held
        self.held[number] = subscription

    def of(self, subscriber: Someone) -> list[int]:
        return [number for number, one in self.held.items() if one.subscriber is subscriber]

    @rule(data=st.data())
    def discard(self, data: st.DataObject) -> None:
        if self.held:
            number = data.draw(st.sampled_from(sorted(self.held)))
            self.router.discard(number)
            del self.held[number]

    @rule(message=colliding_messages() | messages() | TOPICS.map(Message))
    def route(self, message: Message) -> None:
        asked, passed = self.budget.evaluated, self.budget.passed
        own: dict[str, list[Subscription]] = {}
        groups: dict[str, list[Subscription]] = {}
        for one in self.held.values():
            name, filters = one.subscriber.client_id, one.topic_filter.removeprefix("$share/g/")
            if not matches(filters, message.topic) or (one.no_local and name == message.client_id):
                continue
            if one.where is None or walk(one.where.text, message):
                shared = filters != one.topic_filter
                (groups if shared else own).setdefault(filters if shared else name, []).append(one)
        found = destinations(self.router, message)
        assert message.part_values is None
        mine = {each.subscriber.client_id: each for each in found if not each.shared}
        assert mine.keys() == own.keys()
        for name, all_of_them in own.items():
            each = mine[name]
            assert each.qos == max(one.qos for one in all_of_them)
            assert each.retain_as_published == any(one.retain_as_published for one in all_of_them)
            known = [one.identifier for one in all_of_them if one.identifier is not None]
            assert sorted(each.identifiers) == sorted(known)
            assert sorted(each.topic_filters) == sorted(one.topic_filter for one in all_of_them)
        chosen = [(*each.topic_filters, each.subscriber, each.qos) for each in found if each.shared]
        assert len(mine) + len(groups) == len(found)
        route = self.router.route(self.router.match(message.topic))
        picky = [one for members in groups.values() for one in members if one.where is not None]
        assert self.router.evaluates(route) or not picky
        for members in groups.values():
            those = [(one.topic_filter, one.subscriber, one.qos) for one in members]
            assert len([each for each in chosen if each in those]) == 1
        passing = sum(one.where is not None for all_of_them in own.values() for one in all_of_them)
        assert passing <= self.budget.passed - passed <= self.budget.evaluated - asked
        assert groups or self.budget.passed - passed == passing
        assert self.budget.evaluated - asked <= len(self.held)

    @invariant()
    def each_subscriber_has_its_own(self) -> None:
        for subscriber in EVERYONE:
            mine = self.of(subscriber)
            assert sorted(self.router.numbers(subscriber)) == sorted(mine)
            assert self.router.count(subscriber) == len(mine)
            filtered = [number for number in mine if self.held[number].where is not None]
            assert self.router.filtered(subscriber) == len(filtered)

    @invariant()
    def every_subscription_says_what_was_added(self) -> None:
        given = {number: said(one) for number, one in self.router.subscriptions()}
        assert given == {number: said(one) for number, one in self.held.items()}
        shared = [one for one in self.held.values() if one.topic_filter.startswith("$share/")]
        assert (len(self.router), self.router.shared) == (len(self.held), len(shared))
        assert bool(self.router.bytes) == bool(self.held)


TestRouterAgainstList = pytest.mark.uncovered(RouterAgainstList.TestCase)
TestRouterAgainstList.settings = settings(stateful_step_count=40)

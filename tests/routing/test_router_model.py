"""A router, against a list of subscriptions."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from gateway.routing.budget import Budget
from gateway.routing.router import Router
from gateway.routing.subscription import Subscription
from gateway.routing.where.compile import Where, compile_where
from gateway.routing.where.message import Message
from tests.support.naive_matcher import matches
from tests.support.routing import destinations
from tests.support.subscribers import Someone
from tests.support.topics import TOPIC_FILTERS, TOPICS

ANNA, BERT = Someone("anna"), Someone("bert")


WHERES: list[Where | None] = [None, compile_where("x = 1"), compile_where("x = 2")]


def one_of(subscriber: Someone, subscription: Subscription) -> bool:
    return subscription.subscriber is subscriber


def said(subscription: Subscription) -> tuple[object, ...]:
    return tuple(getattr(subscription, name) for name in Subscription.__slots__)


class RouterAgainstList(RuleBasedStateMachine):
    """The router and a list of subscriptions, asked one by one, name the same destinations."""

    def __init__(self) -> None:
        super().__init__()
        self.router = Router(Budget())
        self.held: dict[int, Subscription] = {}

    @rule(
        subscriber=st.sampled_from([ANNA, BERT]),
        topic_filter=TOPIC_FILTERS,
        qos=st.integers(0, 2),
        where=st.sampled_from(WHERES),
        options=st.tuples(st.booleans(), st.booleans()),
        identifier=st.sampled_from([None, 1, 268_435_455]),
    )
    def add(
        self,
        subscriber: Someone,
        topic_filter: str,
        qos: int,
        where: Where | None,
        options: tuple[bool, bool],
        identifier: int | None,
    ) -> None:
        no_local, retain_as_published = options
        subscription = Subscription(
            subscriber,
            topic_filter,
            qos,
            no_local=no_local,
            retain_as_published=retain_as_published,
            identifier=identifier,
            where=where,
        )
        before = self.router.find(subscriber, topic_filter)
        alike = [number for number, one in self.held.items() if one_of(subscriber, one)]
        assert before == next(
            (number for number in alike if self.held[number].topic_filter == topic_filter), None
        )
        if before is not None:
            del self.held[before]
        number = self.router.add(subscription)
        assert number not in self.held
        self.held[number] = subscription

    @invariant()
    def each_subscriber_has_its_own(self) -> None:
        for subscriber in (ANNA, BERT):
            mine = [number for number, one in self.held.items() if one_of(subscriber, one)]
            assert sorted(self.router.numbers(subscriber)) == sorted(mine)
            assert self.router.count(subscriber) == len(mine)
            filtered = [number for number in mine if self.held[number].where is not None]
            assert self.router.filtered(subscriber) == len(filtered)

    @invariant()
    def every_subscription_says_what_was_added(self) -> None:
        given = dict(self.router.subscriptions())
        assert {number: said(one) for number, one in given.items()} == {
            number: said(one) for number, one in self.held.items()
        }

    @rule(data=st.data())
    def discard(self, data: st.DataObject) -> None:
        if self.held:
            number = data.draw(st.sampled_from(sorted(self.held)))
            self.router.discard(number)
            del self.held[number]

    @rule(topic=TOPICS, x=st.integers(1, 2))
    def route(self, topic: str, x: int) -> None:
        expected: dict[str, int] = {}
        for one in self.held.values():
            mine = one.no_local and one.subscriber is ANNA
            passes = one.where is None or one.where.text == f"x = {x}"
            if matches(one.topic_filter, topic) and passes and not mine:
                name = one.subscriber.client_id
                expected[name] = max(expected.get(name, 0), one.qos)
        message = Message(topic, client_id="anna", user_properties=(("x", str(x)),))
        found = destinations(self.router, message)
        assert {one.subscriber.client_id: one.qos for one in found} == expected
        assert len(found) == len(expected)
        assert len(self.router) == len(self.held)


TestRouterAgainstList = RouterAgainstList.TestCase

import gc
import sys
import tracemalloc

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from gateway.routing.budget import Budget
from gateway.routing.route import ROUTE_OVERHEAD, Route
from gateway.routing.route_cache import RouteCache
from gateway.routing.router import Router
from gateway.routing.subscription import Subscription
from gateway.routing.where.message import Message
from tests.support.naive_matcher import matches
from tests.support.subscribers import Someone
from tests.support.topics import TOPIC_FILTERS, TOPICS

EMPTY = Route(b"", (), ())
EACH = ROUTE_OVERHEAD + 1
"""Bytes of an empty route for a topic of one character."""


def test_routes_that_were_not_asked_for_the_longest_go_first() -> None:
    cache = RouteCache(6 * EACH)
    for topic in "abc":
        cache.put(topic, EMPTY)
    assert cache.get("a") is EMPTY
    for topic in "def":  # the young half has room for three
        cache.put(topic, EMPTY)
        assert cache.get("a") is EMPTY
    assert [topic for topic in "abcdef" if cache.get(topic)] == ["a", "d", "e", "f"]
    assert cache.misses == 2
    assert cache.hits == 8
    assert len(cache) * EACH == cache.bytes
    assert cache.values() == {
        "hits": 8,
        "misses": 2,
        "hit_rate": 80,
        "topics": 4,
        "bytes": 4 * EACH,
    }


def test_nothing_was_asked_yet() -> None:
    assert RouteCache(0).values()["hit_rate"] == 0


def test_a_route_that_would_drive_out_all_others_is_not_kept() -> None:
    cache = RouteCache(3 * EACH)
    cache.put("a", EMPTY)
    assert (cache.get("a"), len(cache)) == (None, 0)


def test_a_filter_without_wildcards_touches_one_topic() -> None:
    cache = RouteCache(100 * EACH)
    for topic in "abc":
        cache.put(topic, EMPTY)
    cache.forget("b")
    cache.forget("x")
    assert [cache.get(topic) for topic in "abc"] == [EMPTY, None, EMPTY]
    assert cache.bytes == 2 * EACH
    cache.forget("+")
    assert (len(cache), cache.bytes) == (0, 0)


def test_the_old_half_is_forgotten_too() -> None:
    cache = RouteCache(4 * EACH)
    for topic in "abc":
        cache.put(topic, EMPTY)
    cache.forget("a")
    assert (cache.get("a"), cache.bytes) == (None, 2 * EACH)


WIDE = "x" * 1_000 + "\N{CLOUD}"
LONG = "/".join(["x" * 300] * 7)

ROUTES = [
    ([], [f"{number}/{WIDE}" for number in range(1_000)]),
    (["a/+"], [f"a/{number}" for number in range(1_000)]),
    (["#", "+/+", "a/#", "a/+"], [f"a/{number}" for number in range(1_000)]),
    ([f"a/{each}/#" for each in (LONG, WIDE)], [f"a/{WIDE}/{n}" for n in range(1_000)]),
    (["$share/g/#", "$share/h/#", "$share/g/+/+"], [f"a/{number}" for number in range(1_000)]),
]


@pytest.mark.parametrize("no_local", [False, True])
@pytest.mark.parametrize(("filters", "topics"), ROUTES)
def test_bytes_are_no_less_than_routes_really_take(
    filters: list[str], topics: list[str], no_local: bool
) -> None:
    router = Router(Budget())
    router.add(Subscription(Client("q"), "never/+/+/+", 0))
    for number, name in enumerate(filters):
        for who in (Client(f"a{number}"), Client(f"b{number}")):
            local = no_local and not name.startswith("$share")
            router.add(Subscription(who, name, 2, no_local=local, identifier=number + 1))
    if not filters:
        router.add(Subscription(Client("q"), "+/x", 0))  # no first level is silent
    messages = [Message(topic, qos=n % 3, retain=n % 2 > 0) for topic in topics for n in range(6)]
    gc.collect()
    tracemalloc.start()
    for each in messages:
        router.recipients(each)
    measured = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    size = sum(sys.getsizeof(topic) for topic in topics)  # of keys, which were there before
    assert len(router.routes) > 50
    assert measured + size * len(router.routes) / len(topics) < router.routes.bytes


class Client(Someone):
    asks_filters = False

    def readiness(self, qos: int) -> int:
        return 0


class RoutesAgainstMatcher(RuleBasedStateMachine):
    """However subscriptions come and go, a route kept is the route that would be found."""

    def __init__(self) -> None:
        super().__init__()
        self.router = Router(Budget(), maximum_route_bytes=12 * EACH)
        self.someones = [Someone(name) for name in "abc"]
        self.held: dict[int, Subscription] = {}

    @rule(
        topic_filter=TOPIC_FILTERS,
        place=st.integers(0, 2),
        qos=st.integers(0, 2),
        kept=st.booleans(),
        shared=st.booleans(),
    )
    def add(self, topic_filter: str, place: int, qos: int, kept: bool, shared: bool) -> None:
        name = f"$share/g/{topic_filter}" if shared else topic_filter
        subscriber = self.someones[place]
        one = Subscription(subscriber, name, qos, retain_as_published=kept, identifier=qos + 1)
        self.held.pop(self.router.find(subscriber, name) or 0, None)
        self.held[self.router.add(one)] = one

    @rule(data=st.data())
    def discard(self, data: st.DataObject) -> None:
        if self.held:
            number = data.draw(st.sampled_from(sorted(self.held)))
            self.router.discard(number)
            del self.held[number]

    @rule(topic=TOPICS, qos=st.integers(0, 2), retain=st.booleans(), times=st.integers(1, 3))
    def publish(self, topic: str, qos: int, retain: bool, times: int) -> None:
        own = [
            one
            for one in self.held.values()
            if not one.topic_filter.startswith("$share/") and matches(one.topic_filter, topic)
        ]
        groups = {
            one.topic_filter
            for one in self.held.values()
            if one.topic_filter.startswith("$share/")
            and matches(one.topic_filter.removeprefix("$share/g/"), topic)
        }
        for _ in range(times):
            found = self.router.recipients(Message(topic, qos=qos, retain=retain))
            mine = {one.subscriber: one for one in found if not one.shared}
            assert set(mine) == {one.subscriber for one in own}
            for subscriber, recipient in mine.items():
                matching = [one for one in own if one.subscriber is subscriber]
                assert recipient.qos == max(min(one.qos, qos) for one in matching)
                assert recipient.retain is (
                    retain and any(one.retain_as_published for one in matching)
                )
                assert sorted(recipient.identifiers) == sorted(one.qos + 1 for one in matching)
            assert {one.topic_filters[0] for one in found if one.shared} == groups

    @invariant()
    def stays_within_its_bytes(self) -> None:
        assert self.router.routes.bytes <= 12 * EACH


TestRoutesAgainstMatcher = RoutesAgainstMatcher.TestCase
TestRoutesAgainstMatcher.settings = settings(stateful_step_count=30)

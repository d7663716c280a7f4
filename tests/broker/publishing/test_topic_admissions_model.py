"""What is known of topics, against what a router that knows nothing yet makes of them."""

import gc
import sys
import tracemalloc

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from gateway.broker.client_classes import DurabilityClasses
from gateway.broker.publishing.topic_admissions import TopicAdmissions
from gateway.mqtt.codec.fields import write_string
from gateway.mqtt.topics import TopicLimits
from gateway.routing.budget import Budget
from gateway.routing.route import Route
from gateway.routing.router import Router
from gateway.routing.subscriptions.subscription import Subscription
from tests.support.broker.subscribers import Someone
from tests.support.broker.topics import TOPIC_FILTERS, TOPICS

BYTES = 8_000
"""Of a dozen topics."""


def admissions_of(router: Router, maximum_bytes: int) -> TopicAdmissions:
    limits, classes = TopicLimits(256, 65_535), DurabilityClasses((), "commit")
    return TopicAdmissions(router, limits, classes, p2p=False, maximum_bytes=maximum_bytes)


def said(route: Route) -> tuple[object, ...]:
    always = [
        (each.subscriber.client_id, each.qos, each.retain_as_published, sorted(each.identifiers))
        for each in route.always
    ]
    return sorted(always), len(route.groups)


class AdmissionsAgainstRouter(RuleBasedStateMachine):
    """However subscriptions come and go, an admission kept is the one that would be made."""

    def __init__(self) -> None:
        super().__init__()
        self.router = Router(Budget())
        self.admissions = admissions_of(self.router, BYTES)
        self.someones = [Someone(name) for name in "abc"]
        self.held: dict[int, Subscription] = {}
        self.asked = 0

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

    @rule(topic=TOPICS, times=st.integers(1, 3))
    def ask(self, topic: str, times: int) -> None:
        another = Router(Budget())
        for one in self.held.values():
            another.add(one)
        for _ in range(times):
            self.asked += 1
            admission = self.admissions.find(write_string(topic))
            assert admission.topic == topic
            assert said(admission.route) == said(another.route(another.match(topic)))

    @invariant()
    def stays_within_its_bytes(self) -> None:
        values = self.admissions.values()
        assert values["bytes"] <= BYTES
        assert values["hits"] + values["misses"] == self.asked
        assert (values["bytes"] > 0) == (len(self.admissions) > 0)


TestAdmissionsAgainstRouter = pytest.mark.uncovered(AdmissionsAgainstRouter.TestCase)
TestAdmissionsAgainstRouter.settings = settings(stateful_step_count=30)


class Client(Someone):
    inline = False


WIDE = "x" * 1_000 + "\N{CLOUD}"
LONG = "/".join(["x" * 300] * 7)

KNOWN = [
    ([], [f"{number}/{WIDE}" for number in range(1_000)]),
    (["a/+"], [f"a/{number}" for number in range(1_000)]),
    (["#", "+/+", "a/#", "a/+"], [f"a/{number}" for number in range(1_000)]),
    ([f"a/{each}/#" for each in (LONG, WIDE)], [f"a/{WIDE}/{n}" for n in range(1_000)]),
    (["$share/g/#", "$share/h/#", "$share/g/+/+"], [f"a/{number}" for number in range(1_000)]),
]


@pytest.mark.uncovered
@pytest.mark.parametrize("no_local", [False, True])
@pytest.mark.parametrize(("filters", "topics"), KNOWN)
def test_bytes_are_no_less_than_admissions_really_take(
    filters: list[str], topics: list[str], no_local: bool
) -> None:
    router = Router(Budget())
    for number, name in enumerate(filters):
        for who in (Client(f"a{number}"), Client(f"b{number}")):
            local = no_local and not name.startswith("$share")
            router.add(Subscription(who, name, 2, no_local=local, identifier=number + 1))
    admissions = admissions_of(router, 2 * 1024 * 1024)
    keys = [write_string(topic) for topic in topics]
    gc.collect()
    tracemalloc.start()
    for key in keys:
        admissions.find(key)
    measured = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    size = sum(map(sys.getsizeof, keys))  # of keys, which were there before
    assert len(admissions) > 50
    assert measured + size * len(admissions) / len(keys) < admissions.values()["bytes"]

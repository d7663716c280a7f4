"""Messages of a channel that its consumers may not read, or not now."""

import pytest

from gateway.access.access import AccessPolicy
from gateway.access.acl_file import parse
from gateway.broker import access
from gateway.broker.connecting.connection_info import ConnectionInfo
from gateway.pieces import complete
from tests.support.broker.broker_harness import Harness
from tests.support.broker.channel_harness import channel_of, got, publish, settings
from tests.support.broker.durable_broker import DurableHarness
from tests.support.broker.memory_client import MemoryClient

ALL = "user anna\ntopic t/#\n"
SOME = "user anna\ntopic t/open\n"


class Place:
    def __init__(self, harness: Harness) -> None:
        self.harness = harness
        self.wide, self.narrow = AccessPolicy(parse(ALL)), AccessPolicy(parse(SOME))
        self.apply()

    def apply(self) -> None:
        broker, now = self.harness.broker, self.harness.now
        complete(access.apply(broker, [self.wide, self.narrow], now))
        self.harness.pass_time(0.1)

    def change(self, acl: str) -> None:
        self.wide.replace(parse(acl))
        self.apply()

    def connect(self, policy: AccessPolicy, name: str = "c") -> MemoryClient:
        info = ConnectionInfo(access=policy)
        client = self.harness.connect(
            name, username="anna", info=info, session_expiry=100, clean_start=False
        )
        if not self.harness.broker.router.count(self.harness.session(name)):
            client.subscribe("$share/jobs/t/#", 1)
        self.harness.pass_time(0.1)
        return client


@pytest.fixture(params=["memory", "disk"])
def place(request: pytest.FixtureRequest) -> Place:
    harness = Harness(settings()) if request.param == "memory" else DurableHarness(settings())
    return Place(harness)


def test_a_consumer_by_a_stricter_listener_leaves_the_rest(place: Place) -> None:
    place.connect(place.wide).drop()
    publish(place.harness, "1", "t/secret")
    publish(place.harness, "2", "t/open")
    narrow = place.connect(place.narrow)
    assert got(narrow) == "2"
    publish(place.harness, "3", "t/secret")
    publish(place.harness, "4", "t/open")
    assert got(narrow) == "4"
    assert channel_of(place.harness).depth == 2
    assert got(place.connect(place.wide)) == "13"
    assert not channel_of(place.harness).depth


def test_rules_that_shrink_and_grow_lose_nothing(place: Place) -> None:
    client = place.connect(place.wide)
    channel = channel_of(place.harness)
    place.harness.broker.channels.pause(channel)
    publish(place.harness, "1", "t/secret")
    publish(place.harness, "2", "t/open")
    place.change(SOME)
    place.harness.broker.channels.resume(channel)
    place.harness.pass_time(0.1)
    assert got(client) == "2"
    publish(place.harness, "3", "t/secret")  # which no consumer may read by these rules
    assert (channel.depth, channel.figures.filtered) == (2, 0)
    place.change(ALL)
    assert got(client) == "13"


def test_another_consumer_gets_what_one_may_not_read(place: Place) -> None:
    place.connect(place.wide).drop()
    narrow = place.connect(place.narrow)
    publish(place.harness, "1", "t/secret")
    other = place.connect(place.wide, "other")
    assert got(other) == "1"
    publish(place.harness, "23", "t/secret")
    assert got(other) == "23"
    assert not got(narrow)


def test_who_may_read_little_makes_nobody_else_lose_anything(place: Place) -> None:
    """Neither what came before any consumer, nor what comes while it is the only one."""
    publish(place.harness, "1", "t/secret")
    place.connect(place.narrow, "low")
    publish(place.harness, "2", "t/secret")
    channel = channel_of(place.harness)
    assert (channel.depth, channel.waiting.returned.held_messages) == (2, 2)
    assert got(place.connect(place.wide, "high")) == "12"
    assert (channel.figures.filtered, channel.waiting.returned.held_messages) == (0, 0)


def test_what_is_put_aside_has_a_bound() -> None:
    place = Place(Harness(settings(memory_messages=2)))
    place.connect(place.wide).drop()
    for payload in "123":
        publish(place.harness, payload, "t/secret")
    publish(place.harness, "4", "t/open")
    assert not got(place.connect(place.narrow))  # the third waits, and what is behind it
    assert got(place.connect(place.wide)) == "1234"

"""Retained messages for a subscription whose filter costs much are asked about in pieces."""

import pytest

from gateway.mqtt.packets import Publish
from gateway.settings.broker import BrokerSettings
from tests.support.broker.broker_harness import Harness
from tests.support.broker.memory_client import MemoryClient
from tests.support.broker.subscribing import request, topics

LONG = ("é" * 10_000).encode()
DEAR = "payload LIKE '%_x0%' OR payload NOT LIKE '%_x1%'"
"""Costs two million, and is TRUE; two of them, with their payloads, are as much as a turn may."""


@pytest.fixture
def harness() -> Harness:
    return Harness(BrokerSettings(maximum_filtered_subscriptions=1_000))


def retain(harness: Harness, count: int, payload: bytes = LONG) -> list[str]:
    names = [f"r/{number}" for number in range(count)]
    for name in names:
        harness.publish(name, payload, retain=True)
    return names


def turns(harness: Harness, client: MemoryClient) -> list[str]:
    """Let the replays end; return what came, no more than three at a time."""
    found = []
    for _ in range(100):
        came = topics(client.take())
        assert len(came) <= 3
        found += came
        if not harness.broker.replays.count:
            return found
        harness.pass_time(0.01)
    raise AssertionError("the replay does not end")


@pytest.mark.uncovered
@pytest.mark.parametrize("topic_filter", ["#", "r/+"])
def test_nothing_is_left_out(harness: Harness, topic_filter: str) -> None:
    names = retain(harness, 10)
    client = harness.connect()
    client.subscribe_all([request(topic_filter)], DEAR)
    assert harness.broker.replays.count == 1
    assert turns(harness, client) == names
    assert harness.broker.budget.over.count == 0


def test_what_costs_little_comes_at_once(harness: Harness) -> None:
    names = retain(harness, 100, b"5")
    client = harness.connect()
    client.subscribe_all([request("r/+")], "payload > 4")
    assert topics(client.take()) == names
    assert harness.broker.replays.count == 0


def test_what_may_not_be_had_is_not_asked_about(harness: Harness) -> None:
    client = harness.connect()
    client.send(*(Publish(f"r/{n}", LONG, retain=True) for n in range(10)))
    client.subscribe_all([request("r/+", no_local=True)], DEAR)
    assert topics(client.take()) == []
    assert harness.broker.budget.evaluated == 0


def test_a_message_that_comes_meanwhile_waits_for_no_replay(harness: Harness) -> None:
    names = retain(harness, 10)
    client = harness.connect()
    client.subscribe_all([request("r/+")], DEAR)
    first = topics(client.take())
    for name in names[-4:]:
        harness.publish(name, b"new")
    came = topics(client.take())
    assert came[-1] == names[-1]
    assert harness.broker.budget.over.count > 0  # all of a turn's work was done
    rest = turns(harness, client)
    assert set(first) | set(came) | set(rest) == set(names)

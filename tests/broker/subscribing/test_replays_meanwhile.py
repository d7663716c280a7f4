"""Messages that are published while retained ones are still on their way to subscribers."""

import pytest

from gateway.mqtt.packets import SubscriptionRequest
from tests.support.broker.broker_harness import Harness
from tests.support.broker.publishing import batch
from tests.support.broker.replays import TURN, payloads_of, retain, short_turns, turns
from tests.support.broker.subscribing import topics


@pytest.fixture
def harness() -> Harness:
    harness = Harness()
    short_turns(harness)
    return harness


def test_what_expires_meanwhile_is_not_sent(harness: Harness) -> None:
    retain(harness, 2 * TURN)
    harness.publish("e", retain=True, message_expiry=5)
    client = harness.connect()
    client.subscribe("#")
    harness.pass_time(6)
    harness.publish("e", b"new")
    turns(harness)
    assert payloads_of(client.take(), "e") == [b"new"]


def test_a_message_that_the_filter_refuses_hides_none_that_it_takes(harness: Harness) -> None:
    names = retain(harness, 4 * TURN)
    client = harness.connect()
    client.subscribe_all([SubscriptionRequest("#")], "payload != 'new'")
    harness.publish(names[-1], b"new", retain=True)
    turns(harness)
    packets = client.take()
    assert sorted(topics(packets)) == sorted(names)
    assert payloads_of(packets, names[-1]) == [names[-1].encode()]


def test_every_replay_that_has_not_come_to_a_message_sends_it_first(harness: Harness) -> None:
    names = retain(harness, 4 * TURN)
    client, other, late = (harness.connect(name) for name in ("c", "other", "late"))
    client.subscribe("#")
    client.subscribe("r/+")
    other.subscribe("x/+")
    other.subscribe("#")
    harness.publish(names[-1], b"new", retain=True)
    late.subscribe("#")
    turns(harness)
    old = names[-1].encode()
    assert payloads_of(client.take(), names[-1]) == [old, old, b"new"]
    assert payloads_of(other.take(), names[-1]) == [old, b"new"]
    assert payloads_of(late.take(), names[-1]) == [b"new"]


@pytest.mark.parametrize("qos", [0, 1])
@pytest.mark.parametrize("n", [1, 2, 20])
def test_a_batch_comes_behind_the_retained_message_of_its_topic(
    harness: Harness, n: int, qos: int
) -> None:
    names = retain(harness, 4 * TURN)
    client, publisher = harness.connect("c"), harness.connect("p")
    client.subscribe("#", 1)
    publisher.send(*batch(n, qos, topic=names[-1]))
    turns(harness)
    expected = [names[-1].encode(), *(b"%d" % number for number in range(1, n + 1))]
    assert payloads_of(client.take(), names[-1]) == expected

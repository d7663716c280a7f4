"""Replays whose subscription, connection, session or gateway ends, or changes."""

import pytest

from gateway.broker.subscribing.replays import TURN_MESSAGES
from gateway.mqtt.packets import Publish, SubscriptionRequest, Unsubscribe
from tests.support.broker.broker_harness import Harness
from tests.support.broker.durable_broker import DurableHarness
from tests.support.broker.replays import (
    TURN,
    acknowledged,
    acknowledgements,
    payloads_of,
    retain,
    short_turns,
    turn,
    turns,
)
from tests.support.broker.subscribing import topics


@pytest.fixture
def harness() -> Harness:
    harness = Harness()
    short_turns(harness)
    return harness


def test_unsubscribing_ends_it(harness: Harness) -> None:
    retain(harness, 4 * TURN)
    client = harness.connect()
    client.subscribe("#")
    client.take()
    client.send(Unsubscribe(1, ["#"]))
    client.take()
    assert harness.broker.replays.count == 0
    turn(harness)
    assert client.take() == []
    assert harness.session().on_capacity is None


def test_a_session_that_ends_is_sent_nothing_more(harness: Harness) -> None:
    retain(harness, 4 * TURN)
    client, other = harness.connect(), harness.connect("other")
    client.subscribe_all([SubscriptionRequest("#"), SubscriptionRequest("r/#")])
    other.subscribe("#")
    client.drop()
    assert harness.broker.replays.count == 1
    turns(harness)
    assert len(other.take()) == 4 * TURN


@pytest.mark.parametrize("handling", [1, 2])
def test_subscribing_again_without_a_replay_goes_on_with_the_first(
    harness: Harness, handling: int
) -> None:
    names = retain(harness, 4 * TURN, qos=1)
    client = harness.connect()
    client.subscribe("#")
    request = SubscriptionRequest("#", 1, retain_handling=handling)
    client.subscribe_all([request], identifier=9)
    turns(harness)
    found = client.take()
    assert topics(found) == names
    packets = [each for each in found if isinstance(each, Publish)]
    assert {each.qos for each in packets[:TURN]} == {0}
    assert {each.qos for each in packets[TURN:]} == {1}
    assert {each.properties.subscription_identifiers for each in packets[TURN:]} == {(9,)}


def test_without_a_connection_only_what_is_owed_goes_on(harness: Harness) -> None:
    names = retain(harness, 4 * TURN, qos=1)
    client = harness.persistent()
    client.subscribe_all([SubscriptionRequest("#", 0), SubscriptionRequest("r/#", 1)])
    assert harness.broker.replays.count == 2
    assert topics(client.take()) == names[:TURN]
    client.drop()
    assert harness.broker.replays.count == 1
    turns(harness)
    client = harness.persistent()
    assert acknowledged(client) == names


@pytest.mark.parametrize("retain_again", [False, True])
def test_what_is_published_to_who_is_away_waits_behind_its_retained_message(
    harness: Harness, retain_again: bool
) -> None:
    names = retain(harness, 4 * TURN, qos=1)
    client, publisher = harness.persistent(), harness.connect("p")
    client.subscribe("#", 1)
    client.take()
    client.drop()
    packet = Publish(names[-1], b"new", 1, retain_again, packet_id=1)
    publisher.send(packet, packet)
    turns(harness)
    client = harness.persistent()
    packets = client.take()
    assert payloads_of(packets, names[-1]) == [names[-1].encode(), b"new", b"new"]


def test_a_replay_that_a_crash_interrupts_begins_again() -> None:
    harness = DurableHarness()
    short_turns(harness)
    names = retain(harness, 4 * TURN, qos=1)
    client = harness.persistent()
    client.subscribe("#", 1)
    packets = client.take()
    assert 0 < len(packets) <= TURN
    client.send(*acknowledgements(packets))
    harness.crash()
    assert harness.broker.replays.count == 0  # all in the first turn of the new run
    client = harness.persistent()
    assert set(acknowledged(client)) == set(names)
    harness.crash()
    assert harness.persistent().take() == []  # it is over, and stays so


def test_a_replay_that_was_done_is_not_done_again_after_a_crash() -> None:
    harness = DurableHarness()
    short_turns(harness)
    retain(harness, 4 * TURN, qos=1)
    client = harness.persistent()
    client.subscribe("#", 1)
    assert len(acknowledged(client)) == 4 * TURN
    harness.crash()
    assert harness.persistent().take() == []


@pytest.mark.uncovered
def test_it_takes_several_turns_after_a_crash_too() -> None:
    harness = DurableHarness()
    names = retain(harness, 3 * TURN_MESSAGES // 4, qos=1)
    client = harness.persistent()
    client.subscribe("#", 1)
    client.subscribe("#", 1, retain_handling=2)
    harness.crash()
    assert harness.broker.replays.count == 1
    client = harness.persistent()
    assert set(acknowledged(client)) == set(names)

"""Retained messages for a new subscription when there are more than one turn has room for."""

import pytest

from gateway.broker.subscribing.replays import MAXIMUM_QUEUED, MAXIMUM_UNSENT, PROBED, TURN_BYTES
from gateway.broker.subscribing.subscribe import PAUSE
from gateway.mqtt.packets import (
    PingReq,
    PingResp,
    Publish,
    Subscribe,
    SubscriptionRequest,
    Unsubscribe,
)
from tests.support.broker.broker_harness import Harness
from tests.support.broker.replays import TURN, acknowledged, retain, short_turns, turn, turns
from tests.support.broker.subscribing import topics


@pytest.fixture
def harness() -> Harness:
    harness = Harness()
    short_turns(harness)
    return harness


@pytest.mark.parametrize("topic_filter", ["#", "r/#", "+/+", "r/+"])
def test_a_turn_sends_no_more_than_it_has_room_for(harness: Harness, topic_filter: str) -> None:
    names = retain(harness, 3 * TURN)
    client = harness.connect()
    client.subscribe(topic_filter)
    found = topics(client.take())
    assert found == names[:TURN]
    assert harness.broker.replays.count == 1
    while harness.broker.replays.count:
        turn(harness)
        assert 0 < len(client.inbox) <= TURN
        found += topics(client.take())
    assert found == names
    assert harness.counters.count("tidegate/replays/deferred") == 1


def test_what_one_turn_has_room_for_comes_at_once(harness: Harness) -> None:
    names = retain(harness, TURN)
    client = harness.connect()
    client.subscribe("#")
    assert topics(client.take()) == names
    assert harness.broker.replays.count == 0
    assert harness.counters.count("tidegate/replays/deferred") == 0


def test_subscribers_take_turns(harness: Harness) -> None:
    names = retain(harness, 4 * TURN)
    clients = [harness.connect(name) for name in "abc"]
    for client in clients:
        client.subscribe("#")
    assert [len(client.inbox) for client in clients] == [TURN, 0, 0]
    for count in range(1, 4):
        for _ in clients:
            turn(harness)
        assert {len(client.inbox) for client in clients} <= {TURN * count, TURN * (count + 1)}
    turns(harness)
    assert [topics(client.take()) for client in clients] == [names] * 3


def test_a_small_replay_waits_for_one_turn_of_each_large_one(harness: Harness) -> None:
    retain(harness, 10 * TURN)
    large, small = harness.connect("large"), harness.connect("small")
    large.subscribe("#")
    small.subscribe_all([SubscriptionRequest("r/1"), SubscriptionRequest("none/+")])
    assert small.take() == []
    assert harness.broker.replays.count == 2  # nothing waits for what nothing is retained of
    turn(harness)
    turn(harness)
    assert topics(small.take()) == ["r/1"]
    assert harness.broker.replays.count == 1


def test_a_turn_without_room_takes_no_more_than_a_glance(harness: Harness) -> None:
    for number in range(PROBED + 1):
        harness.publish(f"{number}/x", retain=True)
    client, other = harness.connect(), harness.connect("other")
    client.subscribe("#")
    other.subscribe_all([SubscriptionRequest("+/none"), SubscriptionRequest("none/+")])
    assert harness.broker.replays.count == 2  # of the first it is not known that it has none
    turns(harness)
    assert other.take() == []
    assert len(client.take()) == PROBED + 1


def test_a_small_replay_is_done_in_one_turn_of_its_own(harness: Harness) -> None:
    """It does not fit into what the turn has left, but into a whole one, and is found by topic."""
    names = retain(harness, TURN - 2)
    others = [f"s/{number}" for number in range(20)]
    for name in others:
        harness.publish(name, retain=True)
    client = harness.connect()
    client.subscribe_all([SubscriptionRequest(name) for name in others[:3]])
    client.subscribe("r/+")
    assert topics(client.take()) == others[:3]
    turn(harness)
    assert topics(client.take()) == names
    assert harness.broker.replays.count == 0


def test_large_payloads_fill_a_turn_sooner(harness: Harness) -> None:
    for number in range(6):
        harness.publish(str(number), bytes(TURN_BYTES // 2), retain=True)
    client = harness.connect()
    client.subscribe("#")
    sizes = [len(client.take())]
    while harness.broker.replays.count:
        turn(harness)
        sizes.append(len(client.take()))
    assert sizes == [2, 2, 2]


def test_one_message_above_the_bound_is_sent_all_the_same(harness: Harness) -> None:
    for number in range(3):
        harness.publish(str(number), bytes(TURN_BYTES + 1), retain=True)
    client = harness.connect()
    client.subscribe("#")
    assert len(client.take()) == 1
    assert turns(harness) >= 2
    assert topics(client.take()) == ["1", "2"]


def test_messages_that_are_sent_one_by_one_count_for_more(harness: Harness) -> None:
    retain(harness, 2 * TURN)
    client = harness.connect()
    client.subscribe("#", 1)
    assert len(client.take()) == TURN // 4
    other = harness.connect("other")
    harness.pass_time(1.0)
    client.send(Unsubscribe(1, ["#"]))
    harness.pass_time(1.0)
    other.subscribe_all([SubscriptionRequest("#", 0)], "qos = 0")
    assert len(other.take()) == TURN // 4


def test_topics_that_do_not_match_are_looked_at_in_pieces_too(harness: Harness) -> None:
    harness.publish("a/x", retain=True)
    for number in range(20 * TURN):
        harness.publish(f"{number}/y", retain=True)
    harness.publish("b/x", retain=True)
    harness.publish("$SYS/x", retain=True)
    client = harness.connect()
    client.subscribe("+/x")
    assert topics(client.take()) == ["a/x"]
    assert turns(harness) >= 2
    assert topics(client.take()) == ["b/x"]


def test_who_reads_nothing_is_given_no_more_and_holds_nobody_up(harness: Harness) -> None:
    size = MAXIMUM_UNSENT // TURN // 2
    for number in range(4 * TURN):
        harness.publish(f"r/{number}", bytes(size), retain=True)
    slow, other = harness.connect("slow"), harness.connect("other")
    slow.reads = False
    slow.send(Subscribe(1, [SubscriptionRequest("#")]))
    for _ in range(10):
        turn(harness)
    size = slow.client.connection.output.size
    assert MAXIMUM_UNSENT <= size < MAXIMUM_UNSENT + TURN_BYTES
    assert len(harness.session("slow").queue) == 0
    assert harness.broker.tick(harness.instant) != harness.now  # nothing is due before it reads
    other.subscribe("#")
    while len(other.inbox) < 4 * TURN:
        turn(harness)
    assert harness.broker.replays.count == 1
    slow.reads = True
    harness.settle()
    turns(harness)
    assert len(topics(slow.take())) == 4 * TURN


@pytest.mark.uncovered
def test_who_does_not_acknowledge_is_given_no_more_than_its_queue_may_hold(
    harness: Harness,
) -> None:
    harness.broker.replays.turn_messages = MAXIMUM_QUEUED
    names = retain(harness, 2 * MAXIMUM_QUEUED, qos=1)
    client = harness.connect("c", receive_maximum=10)
    client.subscribe("#", 1)
    for _ in range(20):
        turn(harness)
    waiting = len(harness.session().queue)
    assert MAXIMUM_QUEUED <= waiting < MAXIMUM_QUEUED + MAXIMUM_QUEUED // 4
    assert acknowledged(client) == names


def test_beyond_the_bound_a_subscribe_waits_for_its_own_replays(harness: Harness) -> None:
    names = retain(harness, 4 * TURN)
    client, other = harness.connect(), harness.connect("other")
    harness.broker.replays.maximum_of_one = 1
    filters = ["#", "r/#", "+/+"]
    client.subscribe_all([SubscriptionRequest(each) for each in filters])
    client.send(PingReq())
    most, found = 0, []
    while harness.broker.replays.count or client.client.pieces is not None:
        most = max(most, harness.broker.replays.count)
        other.send(PingReq())  # is answered all the while
        assert isinstance(other.take()[-1], PingResp)
        harness.pass_time(PAUSE)
        if client.client.pieces is not None:
            client.send_bytes(b"")
        found += client.take()
    assert most == 1
    assert topics([each for each in found if isinstance(each, Publish)]) == names * 3
    assert found.index(PingResp()) >= 2 * len(names)  # behind the SUBSCRIBE, whose last goes on


def test_a_new_message_sends_the_one_before_only_to_those_who_wait_for_its_topic(
    harness: Harness,
) -> None:
    names = retain(harness, 3 * TURN)
    harness.publish("last", b"old", retain=True)
    everything, others = harness.connect("a"), harness.connect("b")
    everything.subscribe("#")
    others.subscribe("r/#")
    assert harness.broker.replays.count == 2
    assert topics(everything.take()) == names[:TURN]
    harness.publish("last", b"new")
    assert topics(everything.take()) == ["last", "last"]
    turns(harness)
    assert topics(everything.take()) == names[TURN:]
    assert topics(others.take()) == names

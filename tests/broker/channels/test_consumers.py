from itertools import pairwise

import pytest

from gateway.mqtt.packets import MQTT_3_1_1, MQTT_5, PubAck, Unsubscribe
from gateway.mqtt.reason_codes import ReasonCode
from gateway.settings.broker import BrokerSettings, Unconfigured
from gateway.settings.channel import Choice
from tests.support.broker.channel_harness import (
    SHARED,
    TIMEOUT,
    channel_of,
    consumer,
    durable,
    got,
    messages,
    publish,
)
from tests.support.broker.durable_broker import DurableHarness
from tests.support.broker.subscribing import request


def test_consumers_take_turns() -> None:
    harness = durable()
    clients = [consumer(harness, name) for name in "xyz"]
    publish(harness, "abcdef")
    found = [got(each) for each in clients]
    assert sorted(map(len, found)) == [2, 2, 2]
    assert sorted("".join(found)) == list("abcdef")


@pytest.mark.parametrize("choice", [*Choice])
def test_every_choice_gives_each_message_to_one(choice: Choice) -> None:
    harness = durable(choice=choice)
    clients = [consumer(harness, name) for name in "xyz"]
    for number in range(12):
        publish(harness, chr(97 + number), f"t/{number % 5}")
    assert sorted("".join(got(each) for each in clients)) == list("abcdefghijkl")


def test_random_consumers_are_drawn_and_not_in_turn() -> None:
    harness = durable(choice=Choice.RANDOM)
    clients = [consumer(harness, name) for name in "abc"]
    order = []
    for _ in range(60):
        publish(harness, "x")
        order += [place for place, each in enumerate(clients) if got(each)]
    assert min(order.count(place) for place in range(3)) > 8
    pairs = {*pairwise(order)}
    assert len(pairs) == 9, "after each of them comes any"


def test_who_has_the_fewest_in_flight_gets_the_next() -> None:
    harness = durable(choice=Choice.LEAST_INFLIGHT)
    busy, idle = consumer(harness, "busy"), consumer(harness, "idle")
    publish(harness, "ab")
    assert got(idle, acknowledge=True) in ("a", "b")
    publish(harness, "c")
    assert got(idle) == "c"
    assert len(got(busy)) == 1


def test_a_topic_sticks_to_its_consumer_and_waits_for_it() -> None:
    harness = durable(choice=Choice.STICKY)
    clients = [consumer(harness, name, receive_maximum=1) for name in "xyz"]
    for payload in "abc":
        publish(harness, payload, "t/1")
    found = [got(each) for each in clients]
    assert sorted(found) == ["", "", "abc"]


@pytest.mark.uncovered
@pytest.mark.parametrize("topic", ["t/%d", "t/n%d/temperature", "t/eu/%05d"])
def test_sticky_topics_are_spread_evenly(topic: str) -> None:
    harness = durable(choice=Choice.STICKY)
    clients = [consumer(harness, f"w{number}") for number in range(1, 5)]
    for number in range(1_000):
        publish(harness, "x", topic % number)
    shares = [len(got(each)) for each in clients]
    assert sum(shares) == 1_000
    assert min(shares) > 200
    assert max(shares) < 300, "250 +- four standard deviations"


@pytest.mark.uncovered
def test_a_sticky_consumer_that_comes_takes_its_share_and_moves_no_other_topic() -> None:
    harness = durable(choice=Choice.STICKY)
    clients = [consumer(harness, name) for name in "xyz"]
    before: dict[str, str] = {}
    after: dict[str, str] = {}
    for owners in (before, after):
        for number in range(300):
            publish(harness, "x", f"t/{number}")
            for name, each in zip("xyzw", clients, strict=False):
                if got(each):
                    owners[f"t/{number}"] = name
        clients.append(consumer(harness, "w"))
    moved = [topic for topic, owner in after.items() if owner != before[topic]]
    assert {after[topic] for topic in moved} == {"w"}
    assert 45 < len(moved) < 105, "a quarter of them"


def test_a_full_window_waits() -> None:
    harness = durable()
    client = consumer(harness, "c", receive_maximum=1)
    publish(harness, "ab")
    assert got(client, acknowledge=False) == "a"
    assert (channel_of(harness).depth, channel_of(harness).in_flight) == (1, 1)


def test_filters_and_rights_of_consumers_are_asked() -> None:
    harness = durable()
    low, high = harness.connect("low"), harness.connect("high")
    for client, where in ((low, "payload < 5"), (high, "payload >= 5 AND payload < 9")):
        client.subscribe_all([request(SHARED, 1)], where=where)
    publish(harness, "1679")
    assert (got(low), got(high)) == ("1", "67")
    assert channel_of(harness).figures.filtered == 1


def test_a_channel_has_so_many_consumers_at_most() -> None:
    harness = durable(maximum_consumers=1)
    client = consumer(harness, "a")
    assert harness.connect("b").subscribe(SHARED, 1) == ReasonCode.QUOTA_EXCEEDED
    assert client.subscribe(SHARED, 1) == ReasonCode.GRANTED_QOS_1
    assert harness.counters.count("tidegate/refused/consumers") == 1


@pytest.mark.parametrize("version", [MQTT_3_1_1, MQTT_5])
def test_a_durable_channel_takes_no_consumer_that_acknowledges_nothing(
    version: int, caplog: pytest.LogCaptureFixture
) -> None:
    """It would have messages sent to it, and a channel could not know whether they came.

    A server may grant a lower QoS than is asked for, never a higher one.
    """
    harness = durable()
    client = harness.connect("c", version)
    suback = client.subscribe_all([request(SHARED, 0), request("other", 0)])
    refused = ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR
    expected = ReasonCode.UNSPECIFIED_ERROR if version == MQTT_3_1_1 else refused
    assert suback.reason_codes == [expected, ReasonCode.SUCCESS]
    if version == MQTT_5:
        reason = "consumers of a durable channel subscribe with QoS 1 or 2"
        assert suback.properties.reason_string == reason
    assert "'$share/jobs/t/#' refused at QoS 0" in caplog.text
    assert harness.counters.count("tidegate/refused/unacknowledging_consumers") == 1
    publish(harness, "ab")
    assert (got(client), channel_of(harness).depth) == ("", 2)
    assert client.subscribe(SHARED, 1) == ReasonCode.GRANTED_QOS_1
    assert got(client) == "ab"


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (Unconfigured.DURABLE, ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR),
        (Unconfigured.TEMPORARY, ReasonCode.SUCCESS),
        (Unconfigured.SHARED, ReasonCode.SUCCESS),
    ],
)
def test_who_would_begin_a_durable_channel_acknowledges(
    kind: Unconfigured, code: ReasonCode
) -> None:
    harness = DurableHarness(BrokerSettings(unconfigured_channels=kind))
    client = harness.connect("c")
    assert client.subscribe("$share/new/t", 0) == code
    assert client.subscribe("t", 0) == ReasonCode.SUCCESS


def test_a_session_forgets_the_channels_that_have_ended() -> None:
    harness = durable(temporary=True)
    client = consumer(harness, "a")
    for _ in range(3):
        client.send(Unsubscribe(5, [SHARED]))
        client.take()
        harness.pass_time(0)
        client.subscribe(SHARED, 1)
    assert harness.session("a").consumes == (channel_of(harness),)


def test_messages_wait_for_a_consumer_that_is_away_and_wants_some() -> None:
    harness = durable()
    client = harness.persistent("c")
    client.subscribe_all([request(SHARED, 1)], where="payload < 5")
    client.drop()
    publish(harness, "71")
    assert (channel_of(harness).depth, channel_of(harness).figures.filtered) == (2, 0)
    assert got(harness.persistent("c")) == "1"
    assert channel_of(harness).figures.filtered == 1


def test_who_has_no_room_is_passed_over_and_keeps_no_turn() -> None:
    harness = durable()
    clients = [consumer(harness, name, receive_maximum=1) for name in "a"]
    clients += [consumer(harness, name) for name in "bc"]
    publish(harness, "vwxyz")
    assert [got(each, acknowledge=False) for each in clients] == ["v", "wy", "xz"]


def test_what_comes_back_does_not_wait_for_a_window_that_is_full_of_what_has_timed_out() -> None:
    harness = durable()
    stalled = consumer(harness, "stalled", receive_maximum=1)
    publish(harness, "a")
    assert got(stalled, acknowledge=False) == "a"
    worker = consumer(harness, "worker")
    harness.pass_time(TIMEOUT)
    (packet,) = messages(worker)
    worker.send(PubAck(packet.packet_id, ReasonCode.UNSPECIFIED_ERROR))
    harness.pass_time(0)
    publish(harness, "b")
    assert got(worker) == "ab"


def test_what_comes_back_waits_for_another_that_is_busy() -> None:
    harness = durable()
    busy = consumer(harness, "busy", receive_maximum=1)
    publish(harness, "a")
    (held,) = messages(busy)
    worker = consumer(harness, "worker")
    publish(harness, "b")
    (packet,) = messages(worker)
    worker.send(PubAck(packet.packet_id, ReasonCode.UNSPECIFIED_ERROR))
    harness.pass_time(0)
    assert got(worker) == ""
    busy.send(PubAck(held.packet_id))
    assert got(busy) == "b"

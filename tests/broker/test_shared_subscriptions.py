"""Shared subscriptions (MQTT 5, section 4.8.2): who gets a message, and who after that."""

import pytest

from gateway.mqtt.packets import MQTT_3_1_1, MQTT_5, Disconnect, PubAck, Publish, PubRec, Subscribe
from gateway.mqtt.reason_codes import ReasonCode
from gateway.session.delivery_queue import DeliveryQueue
from tests.support.broker_harness import Harness
from tests.support.memory_client import MemoryClient
from tests.support.payloads import payloads
from tests.support.subscribing import request

SHARED = "$share/g/a"


def members(harness: Harness, *names: str, qos: int = 2) -> list[MemoryClient]:
    clients = [harness.persistent(name) for name in names]
    for client in clients:
        client.subscribe(SHARED, qos)
    return clients


INVALID = [
    *("$share", "$share/", "$share//", "$share//a", "$share/a", "$share/a/"),
    *("$share/+/a", "$share/#/a"),
]


@pytest.mark.parametrize("topic_filter", INVALID)
@pytest.mark.parametrize("version", [MQTT_3_1_1, MQTT_5])
def test_a_filter_without_share_name_or_topic_filter_ends_the_connection(
    harness: Harness, version: int, topic_filter: str
) -> None:
    client = harness.connect("c", version)
    client.send(Subscribe(1, [request("a"), request(topic_filter)]))
    assert client.closed()
    assert [type(packet) for packet in client.take()] == [Disconnect] * (version == MQTT_5)
    assert len(harness.broker.router) == 0


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_who_is_away_is_passed_over(harness: Harness, qos: int) -> None:
    away, here = members(harness, "away", "here")
    away.drop()
    for number in range(4):
        assert harness.publish("a", b"%d" % number, qos=qos) == ReasonCode.SUCCESS
    assert payloads(here.take()) == [b"0", b"1", b"2", b"3"]
    assert not len(harness.session("away").queue)


def test_whose_window_is_full_is_passed_over(harness: Harness) -> None:
    narrow = harness.persistent("narrow", receive_maximum=1)
    narrow.subscribe(SHARED, 1)
    (wide,) = members(harness, "wide")
    for number in range(5):
        harness.publish("a", b"%d" % number, qos=1)
    assert payloads(narrow.take()) == [b"0"]
    assert payloads(wide.take()) == [b"1", b"2", b"3", b"4"]


def test_who_waits_goes_before_who_is_away_and_who_is_full_comes_last(harness: Harness) -> None:
    away, full = members(harness, "away", "full", qos=1)
    away.drop()
    full.drop()
    harness.session("full").queue = DeliveryQueue(maximum_messages=0)
    slow = harness.persistent("slow", receive_maximum=1)
    slow.subscribe(SHARED, 1)
    for _ in range(3):
        harness.publish("a", qos=1)
    assert len(harness.session("slow").queue) == 2
    harness.session("slow").queue.maximum_messages = 2
    for _ in range(3):
        harness.publish("a", qos=1)
    assert len(harness.session("away").queue) == 3
    harness.session("away").queue.maximum_messages = 3
    assert harness.publish("a", qos=1) == ReasonCode.QUOTA_EXCEEDED


def test_a_lasting_member_without_its_client_is_no_use_at_qos_0(harness: Harness) -> None:
    away, zero = members(harness, "away", "zero")
    zero.subscribe(SHARED, 0)
    for client in (away, zero):
        client.drop()
    harness.publish("a", b"1", qos=1)
    harness.publish("a", b"2", qos=1)
    assert payloads(harness.persistent("away").take()) == [b"1", b"2"]


@pytest.mark.parametrize("how", ["clean start", "expiry"])
def test_what_a_member_leaves_over_goes_to_another(harness: Harness, how: str) -> None:
    first = harness.persistent("first", receive_maximum=4)
    first.subscribe(SHARED, 2)
    first.subscribe("b", 2)
    for topic, qos in [("a", 1), ("a", 2), ("b", 1), ("a", 2), ("a", 2), ("a", 1), ("b", 1)]:
        harness.publish(topic, b"%s%d" % (topic.encode(), qos), qos=qos)
    first.send(PubRec(2))
    assert len(harness.session("first").queue) == 3
    first.drop()
    (second,) = members(harness, "second")
    assert not second.take()
    if how == "expiry":
        harness.pass_time(3600)
    else:
        harness.persistent("first", clean_start=True)
    # the first in its order, then what was not sent yet; not what began at QoS 2 [MQTT-4.8.2-5]
    assert second.take() == [
        Publish("a", b"a1", 1, packet_id=1),
        Publish("a", b"a2", 2, packet_id=2),
        Publish("a", b"a1", 1, packet_id=3),
    ]


def test_a_qos_2_message_is_completed_with_the_member_it_was_sent_to(harness: Harness) -> None:
    first, second = members(harness, "first", "second")
    harness.publish("a", b"2", qos=2)
    assert payloads(first.take()) == [b"2"]
    first.drop()
    again = harness.persistent("first")  # [MQTT-4.8.2-4]
    assert again.take() == [Publish("a", b"2", 2, dup=True, packet_id=1)]
    assert not second.take()


@pytest.mark.parametrize("qos", [1, 2])
def test_what_a_member_refuses_is_not_sent_to_another(harness: Harness, qos: int) -> None:
    first, second = members(harness, "first", "second")
    harness.publish("a", qos=qos)
    refusal = (PubAck if qos == 1 else PubRec)(1, ReasonCode.QUOTA_EXCEEDED)
    first.send(refusal)  # [MQTT-4.8.2-6]
    first.drop()
    harness.persistent("first", clean_start=True)
    assert not second.take()


def test_what_has_expired_is_not_left_to_anyone(harness: Harness) -> None:
    first, second = members(harness, "first", "second", qos=1)
    harness.publish("a", qos=1, message_expiry=5)
    first.drop()
    harness.pass_time(6)
    harness.persistent("first", clean_start=True)
    assert not second.take()
    assert harness.counters.count("publish/messages/expired") == 1


def test_with_the_last_member_goes_what_it_was_owed(harness: Harness) -> None:
    (only,) = members(harness, "only", qos=1)
    harness.publish("a", qos=1)
    only.drop()
    harness.persistent("only", clean_start=True)
    assert len(harness.broker.router) == 0
    assert harness.broker.queue_memory.bytes == 0


def test_a_member_is_sent_its_own_copy_beside_the_shared_one(harness: Harness) -> None:
    (member,) = members(harness, "member", qos=1)
    member.subscribe("a", 2)
    harness.publish("a", qos=2)
    assert sorted(packet.qos for packet in member.take() if isinstance(packet, Publish)) == [1, 2]

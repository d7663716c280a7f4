"""Shared subscriptions (MQTT 5, section 4.8.2): who gets a message, and who after that."""

import pytest

from gateway.mqtt.packets import Publish, PubRec
from gateway.mqtt.reason_codes import ReasonCode
from gateway.session.queue.delivery_queue import DeliveryQueue
from tests.support.broker.broker_harness import REFUSING, Harness
from tests.support.broker.memory_client import MemoryClient
from tests.support.broker.payloads import payloads

SHARED = "$share/g/a"


def members(harness: Harness, *names: str, qos: int = 2) -> list[MemoryClient]:
    clients = [harness.persistent(name) for name in names]
    for client in clients:
        client.subscribe(SHARED, qos)
    return clients


def test_whose_window_is_full_is_passed_over(harness: Harness) -> None:
    narrow = harness.persistent("narrow", receive_maximum=1)
    narrow.subscribe(SHARED, 1)
    (wide,) = members(harness, "wide")
    for number in range(5):
        harness.publish("a", b"%d" % number, qos=1)
    assert payloads(narrow.take()) == [b"0"]
    assert payloads(wide.take()) == [b"1", b"2", b"3", b"4"]


def test_who_waits_goes_before_who_is_away_and_who_is_full_comes_last() -> None:
    harness = Harness(REFUSING)
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

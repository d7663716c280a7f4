"""What a run of QoS 1 or 2 ends at: windows, queues, bytes."""

import pytest

from gateway.broker.settings import BrokerSettings
from gateway.mqtt.message_size import MESSAGE_OVERHEAD
from gateway.mqtt.packets import MQTT_3_1_1, MQTT_5, PubAck, Publish
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.broker_harness import Harness
from tests.support.durable_broker import DurableHarness
from tests.support.numbered_runs import published, publishes


def test_a_window_that_is_full_ends_the_run(taken: list[int]) -> None:
    harness = Harness()
    subscriber = harness.connect("c", receive_maximum=5)
    subscriber.subscribe("#", 1)
    harness.connect("publisher").send(*publishes(8, 1))
    assert taken == [5, 0, 0, 0]
    assert len(published(subscriber)) == 5
    subscriber.send(*(PubAck(number) for number in range(1, 6)))
    assert [each.payload for each in published(subscriber)] == [b"6", b"7", b"8"]


def test_what_many_receivers_get_ends_the_run(
    taken: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.broker.numbered_runs.TURN_BYTES", 2 * 4 * (MESSAGE_OVERHEAD + 11))
    harness = Harness()
    receivers = [harness.connect("one"), harness.connect("two")]
    for receiver in receivers:
        receiver.subscribe("a/b", 1)
    publisher = harness.connect("p")
    publisher.send(*publishes(9, 1))
    assert taken == [4, 4, 1]
    assert [len(published(receiver)) for receiver in receivers] == [9, 9]


def test_our_receive_maximum_ends_the_run_and_then_the_connection(taken: list[int]) -> None:
    harness = Harness(BrokerSettings(receive_maximum=4))
    publisher = harness.connect("publisher")
    publisher.send(*publishes(5, 2))
    assert taken == [4, 0]
    assert publisher.closed()


def test_packet_identifiers_come_round(taken: list[int]) -> None:
    harness = Harness(BrokerSettings(maximum_inflight=60_000))
    subscriber = harness.connect("c", MQTT_3_1_1)
    subscriber.subscribe("#", 1)
    publisher = harness.connect("publisher", MQTT_3_1_1)
    seen: list[int] = []
    for _ in range(300):
        publisher.send(*publishes(500, 1))
        numbers = [each.packet_id for each in published(subscriber)]
        kept = numbers[-1:] if not seen else []  # the first turn's last is never acknowledged
        subscriber.send(*(PubAck(number) for number in numbers if number not in kept))
        seen += numbers
    stuck = seen[499]
    assert stuck in seen[:500]
    assert stuck not in seen[500:]
    assert 0 not in seen
    assert len(harness.session("c").inflight) == 1
    assert sum(taken) > 140_000


def test_a_store_that_is_full_takes_no_runs(taken: list[int]) -> None:
    harness = DurableHarness()
    harness.persistent("c").subscribe("#", 1)
    harness.disk.full = True
    publisher = harness.connect("publisher")
    publisher.send(*publishes(2, 1))
    assert [each.reason_code for each in publisher.take() if isinstance(each, PubAck)] == [
        ReasonCode.QUOTA_EXCEEDED
    ] * 2


def test_what_waits_behind_a_run_follows_it_many_at_a_time(taken: list[int]) -> None:
    harness = Harness(BrokerSettings(maximum_inflight=5))
    subscriber = harness.connect("c")
    subscriber.subscribe("#", 1)
    harness.connect("publisher").send(*publishes(9, 1))
    assert taken[0] == 5
    assert [each.packet_id for each in published(subscriber)] == [1, 2, 3, 4, 5]
    subscriber.send(PubAck(1), PubAck(2), PubAck(3))
    assert [(each.packet_id, each.payload) for each in published(subscriber)] == [
        (6, b"6"),
        (7, b"7"),
        (8, b"8"),
    ]
    inflight = harness.session("c").inflight
    assert [number for number, _ in inflight.items()] == [4, 5, 6, 7, 8]
    subscriber.send(*(PubAck(number) for number in (4, 5, 6, 7, 8)))
    assert [(each.packet_id, each.payload) for each in published(subscriber)] == [(9, b"9")]
    assert len(inflight) == 1


def test_what_would_be_too_large_when_rewritten_is_not_passed_on(taken: list[int]) -> None:
    harness = Harness()
    small = harness.connect("small", MQTT_5, maximum_packet_size=100)
    small.subscribe("a/b")
    publisher = harness.connect("publisher", MQTT_3_1_1)
    publisher.send(Publish("a/b", bytes(91)), Publish("a/b", bytes(92)), Publish("a/b", bytes(93)))
    assert taken == [1, 0, 0]
    assert [len(each.payload) for each in published(small)] == [91, 92]

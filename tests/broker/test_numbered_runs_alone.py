"""Messages of QoS 1 and 2 that were all that was read."""

from typing import Any, cast

import pytest

from gateway.broker.numbered_runs import pass_on_alone
from gateway.mqtt.encode import encode
from gateway.mqtt.packets import (
    MQTT_3_1_1,
    MQTT_5,
    PingResp,
    PubAck,
    Publish,
    PubRec,
    SubscriptionRequest,
)
from gateway.mqtt.properties import Properties
from tests.support.broker_harness import Harness
from tests.support.durable_broker import DurableHarness
from tests.support.memory_client import MemoryClient
from tests.support.numbered_runs import published, publishes
from tests.support.wire import Wire


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Give for each read that was asked about whether it was passed on as one packet alone."""
    answers: list[bool] = []

    def noting(*arguments: Any) -> bool:
        answers.append(pass_on_alone(*arguments))
        return answers[-1]

    monkeypatch.setattr("gateway.broker.broker.pass_on_numbered", noting)
    return answers


@pytest.mark.parametrize("qos", [1, 2])
@pytest.mark.parametrize("version", [MQTT_3_1_1, MQTT_5])
def test_one_packet_alone_is_passed_on_without_looking_further(
    version: int, qos: int, taken: list[int], alone: list[bool]
) -> None:
    harness = Harness()
    subscriber = harness.connect("c", version)
    subscriber.subscribe("a/b", qos)
    publisher = harness.connect("publisher", version)
    for packet in publishes(3, qos):
        publisher.send(packet)
    assert (taken, alone) == ([1], [True, True])
    assert published(subscriber) == publishes(3, qos)
    answer = PubAck if qos == 1 else PubRec
    assert publisher.take() == [answer(number) for number in (1, 2, 3)]
    traffic = harness.broker.traffic
    assert (traffic.messages_received, traffic.messages_sent) == (3, 3)
    assert (traffic.bytes_received, traffic.bytes_sent) == (3, 3)
    assert publisher.client.connection.packets_received == 1 + 3
    assert publisher.client.connection.unacknowledged == (0 if qos == 1 else 3)


def send_alone(publisher: MemoryClient, packet: Publish) -> None:
    """Hand a packet to the broker in a turn that nothing else came in."""
    data = encode(packet, publisher.version)
    harness = publisher.harness
    assert not harness.broker.receive(publisher.client, data, harness.instant, True)


@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("sent_with", [1, 2])
def test_a_message_alone_and_its_answer_leave_before_the_turn_ends(
    qos: int, sent_with: int
) -> None:
    harness = Harness()
    subscriber = harness.connect("c")
    subscriber.subscribe("a/b", qos)
    publisher = harness.connect("publisher")
    first, packet = publishes(2, sent_with)
    publisher.send(first)
    wires = []
    for client in (subscriber, publisher):
        client.client.connection.output.transport = wire = Wire()
        wires.append(wire)
    packets, network_sent = harness.broker.packets(), harness.broker.traffic.network_sent
    send_alone(publisher, cast("Publish", packet))
    granted = min(qos, sent_with)
    received = Publish("a/b", b"2", granted, packet_id=2 if granted else 0)
    answer = PubAck(2) if sent_with == 1 else PubRec(2)
    written = [encode(received, MQTT_5), encode(answer, MQTT_5)]
    assert [wire.written for wire in wires] == [[each] for each in written]
    assert harness.broker.packets() == (packets[0] + 1, packets[1] + 2)
    assert harness.broker.traffic.network_sent == network_sent + sum(map(len, written))
    assert not subscriber.client.connection.touched
    assert not publisher.client.connection.touched
    assert publisher.client.connection.unacknowledged == (0 if sent_with == 1 else 2)


def test_a_message_alone_and_its_answer_keep_their_order() -> None:
    harness = Harness()
    both = harness.connect("both")
    both.subscribe("a/b", 1)
    first, packet = publishes(2, 1)
    both.send(first)
    both.take()
    both.client.connection.output.transport = wire = Wire()
    both.client.send(PingResp())
    send_alone(both, cast("Publish", packet))
    assert wire.written == []
    harness.settle()
    assert both.take() == [PingResp(), packet, PubAck(2)]


def test_an_answer_that_waits_for_the_disk_does_not_leave_at_once() -> None:
    harness = DurableHarness()
    subscriber = harness.persistent("c")
    subscriber.subscribe("a/b", 1)
    publisher = harness.connect("publisher")
    first, packet = publishes(2, 1)
    publisher.send(first)
    subscriber.send(PubAck(1))
    harness.commits = False
    publisher.take()
    for client in (subscriber, publisher):
        client.client.connection.output.transport = Wire()
    send_alone(publisher, cast("Publish", packet))
    assert subscriber.client.connection.output.transport == Wire([encode(packet, MQTT_5)])
    assert publisher.client.connection.output.transport == Wire()
    harness.settle()
    assert publisher.take() == []
    subscriber.send(PubAck(2))
    assert publisher.take() == [PubAck(2)]


NOT_ALONE = {
    "another topic": encode(Publish("a/c", b"4", 1, packet_id=4), MQTT_5),
    "another QoS": encode(Publish("a/b", b"4", 2, packet_id=4), MQTT_5),
    "properties": encode(
        Publish("a/b", b"4", 1, packet_id=4, properties=Properties(content_type="t")), MQTT_5
    ),
    "two": encode(Publish("a/b", b"4", 1, packet_id=4), MQTT_5) * 2,
    "not whole": encode(Publish("a/b", b"4", 1, packet_id=4), MQTT_5)[:-1],
    "no identifier": b"\x32\x08\0\3a/b\0\0\0",
    "nothing behind the topic": b"\x32\x05\0\3a/b",
}


@pytest.mark.parametrize("data", NOT_ALONE.values(), ids=NOT_ALONE)
def test_what_is_not_like_the_last_packet_is_looked_at(data: bytes, alone: list[bool]) -> None:
    harness = Harness()
    harness.connect("c").subscribe("#", 2)
    publisher = harness.connect("publisher")
    for packet in publishes(2, 1):
        publisher.send(packet)
    publisher.send_bytes(data)
    assert alone == [True, False]


def test_who_gets_what_comes_alone_is_looked_up_each_time(alone: list[bool]) -> None:
    harness = Harness()
    subscriber = harness.connect("c", properties=Properties(receive_maximum=3))
    subscriber.subscribe("a/b", 1)
    publisher = harness.connect("publisher")
    for packet in publishes(4, 1):  # the window is full then
        publisher.send(packet)
    assert alone == [True, True, False]
    filtered = harness.connect("filtered")
    filtered.subscribe_all([SubscriptionRequest("a/b", 1)], where="value > 0")
    publisher.send(*publishes(1, 1, 5))
    assert alone == [True, True, False, False]
    assert publisher.take() == [PubAck(number) for number in range(1, 6)]

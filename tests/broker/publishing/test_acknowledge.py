from collections.abc import Callable
from functools import partial

import pytest

from gateway.mqtt.packets import Disconnect, Packet, PubAck, PubComp, Publish, PubRec, PubRel
from gateway.mqtt.reason_codes import ReasonCode
from gateway.settings.broker import BrokerSettings
from gateway.settings.storage import DurabilityRule
from tests.support.broker.broker_harness import Harness
from tests.support.broker.durable_broker import DurableHarness
from tests.support.broker.memory_client import MemoryClient
from tests.support.broker.publishing import batch

SUCCESS = ReasonCode.SUCCESS
REFUSAL = partial(PubRec, reason_code=ReasonCode.QUOTA_EXCEEDED)


def receiver(harness: Harness, qos: int, receive_maximum: int | None = 1) -> MemoryClient:
    """Return a client that was sent "1" and is owed "2" once it has acknowledged that."""
    client = harness.connect(receive_maximum=receive_maximum)
    client.subscribe("a", qos)
    for payload in (b"1", b"2"):
        harness.publish("a", payload, qos=2)
    assert client.take() == [Publish("a", b"1", qos, packet_id=1)]
    return client


def test_a_refused_qos_2_delivery_is_over(harness: Harness) -> None:
    client = receiver(harness, 2)
    client.send(PubRec(1, ReasonCode.QUOTA_EXCEEDED))
    assert client.take() == [Publish("a", b"2", 2, packet_id=2)]


@pytest.mark.parametrize("code", [ReasonCode.UNSPECIFIED_ERROR, ReasonCode.QUOTA_EXCEEDED])
def test_a_refusal_of_an_unknown_message_needs_no_answer(
    harness: Harness, code: ReasonCode
) -> None:
    client = harness.connect()
    client.send(PubRec(7, code), PubRec(8, ReasonCode.NO_MATCHING_SUBSCRIBERS))
    assert client.take() == [PubRel(8, ReasonCode.PACKET_IDENTIFIER_NOT_FOUND)]


@pytest.mark.parametrize(
    ("qos", "answer", "reason"),
    [
        (2, PubAck, "PUBACK for the QoS 2 message 1"),
        (1, PubRec, "PUBREC for the QoS 1 message 1"),
        (1, REFUSAL, "PUBREC for the QoS 1 message 1"),
        (2, PubComp, "PUBCOMP for 1 before its PUBREC"),
        (1, PubComp, "PUBCOMP for 1 before its PUBREC"),
    ],
)
def test_the_wrong_answer_is_a_protocol_error(
    harness: Harness, qos: int, answer: Callable[[int], Packet], reason: str
) -> None:
    client = receiver(harness, qos)
    client.send(answer(1))
    disconnect = client.take_only(Disconnect)
    assert disconnect.reason_code == ReasonCode.PROTOCOL_ERROR
    assert disconnect.properties.reason_string == reason


def test_acknowledgements_may_say_more_than_their_identifier(harness: Harness) -> None:
    client = receiver(harness, 2)
    client.send(PubRec(1, ReasonCode.NO_MATCHING_SUBSCRIBERS))
    assert client.take() == [PubRel(1)]
    client.send(PubComp(1, ReasonCode.PACKET_IDENTIFIER_NOT_FOUND))
    assert client.take() == [Publish("a", b"2", 2, packet_id=2)]
    client.send(Publish("b", qos=2, packet_id=7))
    client.send(PubRel(7, ReasonCode.PACKET_IDENTIFIER_NOT_FOUND))
    assert client.take()[1:] == [PubComp(7)]


@pytest.mark.parametrize(
    ("order", "left"),
    [
        ([1, 2, 4, 3, 6], [5]),
        ([6, 5, 4, 3, 2, 1], []),
        ([2, 2, 9, 3], [1, 4, 5, 6]),
        ([1, 3, 5], [2, 4, 6]),
    ],
)
@pytest.mark.parametrize("qos", [1, 2])
def test_acknowledgements_come_in_any_order(
    harness: Harness, order: list[int], left: list[int], qos: int
) -> None:
    client = harness.connect()
    client.subscribe("a/b", qos)
    harness.connect("p").send(*batch(6, qos))
    client.take()
    if qos == 1:
        client.send(*(PubAck(number) for number in order))
    else:
        client.send(*(PubRec(number) for number in order))
        unknown = ReasonCode.PACKET_IDENTIFIER_NOT_FOUND
        expected = [PubRel(number, unknown if number == 9 else SUCCESS) for number in order]
        assert client.take() == expected
        client.send(*(PubComp(number) for number in order))
    assert [number for number, _ in harness.session().inflight.items()] == left


def test_qos_0_keeps_its_place_behind_what_waits(harness: Harness) -> None:
    client = harness.connect(receive_maximum=1)
    client.subscribe("a", 1)
    for number, qos in enumerate([1, 1, 0, 0]):
        harness.publish("a", b"%d" % number, qos=qos)
    assert [packet.payload for packet in client.take() if isinstance(packet, Publish)] == [b"0"]
    client.send(PubAck(1))
    waited = [packet.payload for packet in client.take() if isinstance(packet, Publish)]
    assert waited == [b"1", b"2", b"3"]


def test_a_pubrel_that_waits_for_no_disk_does_not_wait_for_the_next() -> None:
    memory = DurabilityRule("memory", topic="memory")
    harness = DurableHarness(BrokerSettings(durability=(memory,)))
    client = harness.persistent()
    client.subscribe("+", 2)
    for topic in ("memory", "a", "memory"):
        harness.publish(topic, qos=2)
    assert len(client.take()) == 3
    harness.commits = False
    client.send(PubRec(1), PubRec(2), PubRec(3))
    assert client.take() == [PubRel(1)]
    harness.commit()
    assert client.take() == [PubRel(2), PubRel(3)]

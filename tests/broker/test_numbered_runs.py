"""Runs at QoS 1 and 2, and what is no run."""

from collections.abc import Callable
from typing import Any

import pytest

from gateway.broker.acknowledgement_runs import take_alone, take_run
from gateway.mqtt.encode import encode
from gateway.mqtt.packets import (
    MQTT_3_1_1,
    MQTT_5,
    PubAck,
    PubComp,
    Publish,
    PubRec,
    PubRel,
    SubscriptionRequest,
)
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from gateway.mqtt.received_runs import next_byte
from tests.support.broker_harness import Harness
from tests.support.inline import Inline
from tests.support.numbered_runs import TAKE_ALONE, TAKE_RUN, published, publishes


@pytest.fixture
def acknowledged(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Give the answers of `take_run` that were asked about acknowledgements."""
    answers: list[bool] = []

    def noting(client: Any, *arguments: Any) -> bool:
        asked = next_byte(client.connection) in (0x40, 0x50, 0x62, 0x70)
        done = take_run(client, *arguments)
        if asked:
            answers.append(done)
        return done

    def noting_alone(client: Any, data: bytes, *arguments: Any) -> int:
        done = take_alone(client, data, *arguments)
        if done:
            answers.append(True)
        return done

    monkeypatch.setattr(TAKE_RUN, noting)
    monkeypatch.setattr(TAKE_ALONE, noting_alone)
    return answers


@pytest.mark.parametrize("version", [MQTT_3_1_1, MQTT_5])
def test_a_run_of_qos_1_is_passed_on_and_acknowledged(
    version: int, taken: list[int], acknowledged: list[bool]
) -> None:
    harness = Harness()
    first, second = (harness.connect(name, version) for name in ("first", "second"))
    first.subscribe("a/#", 1)
    second.subscribe("a/b", 2)
    publisher = harness.connect("publisher", version)
    publisher.send(*publishes(120, 1, 7))
    assert taken == [120]
    assert publisher.take() == [PubAck(number) for number in range(7, 127)]
    for client in (first, second):
        assert published(client) == publishes(120, 1, 1)[:0] + [
            Publish("a/b", b"%d" % (number + 6), 1, packet_id=number) for number in range(1, 121)
        ]
        client.send(*(PubAck(number) for number in range(1, 121)))
    assert acknowledged == [True, True]
    assert not len(harness.session("first").inflight)
    traffic = harness.broker.traffic
    assert (traffic.messages_received, traffic.messages_sent) == (120, 240)
    assert traffic.bytes_sent == 2 * traffic.bytes_received
    assert harness.broker.packets() == (120 + 3 + 2 + 240, 240 + 120 + 3 + 2)


@pytest.mark.parametrize("version", [MQTT_3_1_1, MQTT_5])
def test_a_run_of_qos_2_goes_through_all_four_packets(
    version: int, taken: list[int], acknowledged: list[bool]
) -> None:
    harness = Harness()
    subscriber = harness.connect("subscriber", version)
    subscriber.subscribe("#", 2)
    publisher = harness.connect("publisher", version)
    numbers = range(1, 21)
    publisher.send(*publishes(20, 2))
    assert taken == [20]
    assert publisher.take() == [PubRec(number) for number in numbers]
    assert len(harness.session("publisher").incoming) == 20
    publisher.send(*(PubRel(number) for number in numbers))
    assert publisher.take() == [PubComp(number) for number in numbers]
    assert not len(harness.session("publisher").incoming)
    assert published(subscriber) == publishes(20, 2)
    subscriber.send(*(PubRec(number) for number in numbers[:15]))
    subscriber.send(*(PubComp(number) for number in numbers[:10]))
    subscriber.send(*(PubRec(number) for number in numbers[15:]))
    subscriber.send(*(PubComp(number) for number in numbers[10:]))
    assert subscriber.take() == [PubRel(number) for number in numbers]
    assert acknowledged == [True] * 5
    assert not len(harness.session("subscriber").inflight)


def test_a_topic_without_subscribers_is_answered_with_the_reason(taken: list[int]) -> None:
    harness = Harness()
    publisher = harness.connect("publisher")
    publisher.send(*publishes(3, 1))
    publisher.send(*publishes(3, 2, 4))
    nobody = ReasonCode.NO_MATCHING_SUBSCRIBERS
    assert publisher.take() == [
        *(PubAck(number, nobody) for number in (1, 2, 3)),
        *(PubRec(number, nobody) for number in (4, 5, 6)),
    ]
    assert taken == [3, 3]


OTHERWISE: dict[str, Callable[[Harness], object]] = {
    "an identifier": lambda harness: harness.connect("c").subscribe_all(
        [SubscriptionRequest("a/b")], identifier=3
    ),
    "a part of the gateway": lambda harness: harness.broker.subscribe_inline(Inline(), ["#"]),
    "aliases": lambda harness: harness.connect(
        "c", properties=Properties(topic_alias_maximum=5)
    ).subscribe("a/b", 1),
}


@pytest.mark.parametrize("otherwise", OTHERWISE.values(), ids=OTHERWISE)
def test_where_a_receiver_needs_more_each_message_is_handled(
    otherwise: Callable[[Harness], object], taken: list[int]
) -> None:
    harness = Harness()
    plain = harness.connect("plain")
    plain.subscribe("a/b", 1)
    otherwise(harness)
    harness.connect("publisher").send(*publishes(3, 1))
    assert [each.payload for each in published(plain)] == [b"1", b"2", b"3"]
    assert taken == [0] * 3


@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("version", [MQTT_3_1_1, MQTT_5])
def test_a_run_is_rewritten_for_another_qos_and_another_version(
    version: int, qos: int, taken: list[int]
) -> None:
    harness = Harness()
    subscribers = [
        harness.connect(f"c{number}", each) for number, each in enumerate([MQTT_3_1_1, MQTT_5] * 3)
    ]
    for number, subscriber in enumerate(subscribers):
        subscriber.subscribe("a/b", number // 2)
    sizes = [0, 1, 1, 121, 122, 123, 200, 2]
    packets = [
        Publish("a/b", b"x" * size, qos, packet_id=number * (qos > 0))
        for number, size in enumerate(sizes, 1)
    ]
    harness.connect("publisher", version).send(*packets)
    assert taken == [len(sizes)]
    for number, subscriber in enumerate(subscribers):
        sent = min(qos, number // 2)
        assert published(subscriber) == [
            Publish("a/b", b"x" * size, sent, packet_id=place * (sent > 0))
            for place, size in enumerate(sizes, 1)
        ]
    assert harness.broker.traffic.bytes_sent == 6 * sum(sizes)


def test_properties_and_a_missing_identifier_end_the_run(taken: list[int]) -> None:
    harness = Harness()
    subscriber = harness.connect("c")
    subscriber.subscribe("#", 1)
    publisher = harness.connect("publisher")
    more = Publish("a/b", b"x", 1, packet_id=9, properties=Properties(content_type="t"))
    publisher.send(*publishes(3, 1), more, *publishes(2, 1, 4))
    assert taken == [3, 0, 2]
    harness.connect("other").send_bytes(
        b"".join(encode(each, MQTT_5) for each in publishes(2, 1))
        + encode(Publish("a/b", b"1", 1, packet_id=0x0100), MQTT_5).replace(
            b"\x01\x00\x00", b"\0" * 3
        )
    )
    assert taken[3:] == [2]
    assert len(published(subscriber)) == 8


def test_what_begins_like_the_last_run_may_be_no_run(taken: list[int]) -> None:
    harness = Harness()
    subscriber = harness.connect("c")
    subscriber.subscribe("#", 1)
    publisher = harness.connect("publisher")
    publisher.send(*publishes(2, 1))
    publisher.send(*publishes(2, 1, 3))
    publisher.send(Publish("a/b", b"5", 1, packet_id=5, properties=Properties(content_type="t")))
    assert taken == [2, 2, 0]
    filtered = harness.connect("filtered")
    filtered.subscribe_all([SubscriptionRequest("a/b", 1)], where="value > 0")
    publisher.send(*publishes(2, 1, 6))
    assert taken == [2, 2, 0, 0, 0]
    assert [each.payload for each in published(subscriber)] == [b"%d" % n for n in range(1, 8)]
    assert publisher.take() == [PubAck(number) for number in range(1, 8)]


def test_receivers_at_qos_0_share_what_is_written_for_them() -> None:
    harness = Harness()
    receivers = [harness.connect(name) for name in ("one", "two")]
    for receiver in receivers:
        receiver.subscribe("a/b", 0)
    harness.connect("publisher").send(*publishes(3, 1))
    for receiver in receivers:
        assert published(receiver) == [Publish("a/b", b"%d" % n) for n in (1, 2, 3)]


def test_what_is_sent_twice_is_delivered_once(taken: list[int]) -> None:
    harness = Harness()
    subscriber = harness.connect("c")
    subscriber.subscribe("#", 2)
    publisher = harness.connect("publisher")
    publisher.send(*publishes(3, 2))
    publisher.send(*publishes(4, 2))
    assert taken == [3, 0, 0, 0, 1]
    assert publisher.take() == [PubRec(number) for number in (1, 2, 3, 1, 2, 3, 4)]
    assert [each.payload for each in published(subscriber)] == [b"1", b"2", b"3", b"4"]


def test_acknowledgements_in_another_order_are_taken_one_by_one(acknowledged: list[bool]) -> None:
    harness = Harness()
    subscriber = harness.connect("c")
    subscriber.subscribe("#", 1)
    publisher = harness.connect("publisher")
    publisher.send(*publishes(6, 1))
    subscriber.send(PubAck(1), PubAck(2), PubAck(4), PubAck(3), PubAck(6))
    assert acknowledged == [True, False, True]  # the one that is not next has made them single
    assert [number for number, _ in harness.session("c").inflight.items()] == [5]
    subscriber.send(PubAck(5, ReasonCode.UNSPECIFIED_ERROR))
    assert not len(harness.session("c").inflight)


def test_what_was_sent_in_a_run_is_sent_again(taken: list[int]) -> None:
    harness = Harness()
    subscriber = harness.persistent("c")
    subscriber.subscribe("#", 1)
    harness.connect("publisher").send(*publishes(5, 1))
    subscriber.send(PubAck(1), PubAck(2))
    subscriber.drop()
    assert harness.broker.queue_memory.deliveries == 3
    again = harness.persistent("c")
    assert again.take() == [
        Publish("a/b", b"%d" % number, 1, dup=True, packet_id=number) for number in (3, 4, 5)
    ]
    again.send(*(PubAck(number) for number in (3, 4, 5)))
    assert harness.broker.queue_memory.bytes == 0
    assert taken == [5]

"""Retained messages that come one behind the other, each of its own topic."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.broker.durability_classes import DurabilityEntry
from gateway.broker.publish import handle_publish
from gateway.broker.retained_runs import ANSWERED_AT_ONCE
from gateway.broker.runs import pass_on
from gateway.broker.settings import BrokerSettings
from gateway.mqtt.encode import encode
from gateway.mqtt.packets import (
    MQTT_3_1_1,
    MQTT_5,
    Disconnect,
    Packet,
    PubAck,
    Publish,
    SubscriptionRequest,
)
from gateway.mqtt.properties import NO_PROPERTIES, Properties
from gateway.mqtt.reason_codes import ReasonCode
from gateway.routing.retained import LEVEL_OVERHEAD
from tests.support.broker_harness import Disk, Harness, Inline, MemoryClient
from tests.support.sqlite_disk import SqliteDisk

NOBODY = ReasonCode.NO_MATCHING_SUBSCRIBERS


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Give the answers of `pass_on`: True for each run that was kept."""
    answers: list[bool] = []

    def noting(*arguments: Any) -> bool:
        answers.append(pass_on(*arguments))
        return answers[-1]

    monkeypatch.setattr("gateway.broker.broker.pass_on", noting)
    return answers


def retained(topics: Iterable[str], qos: int = 1, payload: bytes = b"x") -> list[Publish]:
    return [
        Publish(topic, payload, qos, True, packet_id=number * qos)
        for number, topic in enumerate(topics, 1)
    ]


def kept(harness: Harness) -> dict[str, bytes]:
    return {each.topic: each.payload for each in harness.broker.retained.match("#", harness.now)}


@pytest.mark.parametrize("version", [MQTT_3_1_1, MQTT_5])
@pytest.mark.parametrize("qos", [0, 1])
def test_all_that_come_at_once_are_kept(
    harness: Harness, version: int, qos: int, taken: list[bool]
) -> None:
    publisher = harness.connect("publisher", version, username="u")
    topics = [f"a/{number}/ä" for number in range(300)]
    publisher.send(*retained(topics, qos))
    assert taken == [True] * (300 // ANSWERED_AT_ONCE if qos else 1)
    code = NOBODY if version == MQTT_5 else ReasonCode.SUCCESS
    assert publisher.take() == [PubAck(number, code) for number in range(1, 301)] * qos
    assert kept(harness) == dict.fromkeys(topics, b"x")
    traffic = harness.broker.traffic
    assert (traffic.messages_received, traffic.bytes_received) == (300, 300)
    assert harness.broker.packets() == (301, 1 + 300 * qos)
    message = harness.broker.retained.get("a/299/ä")
    assert message is not None
    assert (message.client_id, message.username, message.received_at) == (
        "publisher",
        "u",
        harness.wall,
    )
    assert (message.qos, message.retain, message.arrived) == (qos, True, harness.now)
    assert message.commit_within == 0.0
    assert harness.broker.retained.get("a/299/ä") is message


SPECIAL: dict[str, Publish] = {
    "QoS 2": Publish("b", b"1", 2, True, packet_id=2),
    "sent again": Publish("b", b"1", 1, True, True, packet_id=2),
    "not retained": Publish("b", b"1", 1, packet_id=2),
    "no payload": Publish("b", b"", 1, True, packet_id=2),
    "a property": Publish("b", b"1", 1, True, False, 2, Properties(content_type="x")),
    "not for clients": Publish("$SYS/b", b"1", 1, True, packet_id=2),
    "too many levels": Publish("/" * 256, b"1", 1, True, packet_id=2),
    "somebody has subscribed": Publish("heard/b", b"1", 1, True, packet_id=2),
    "a part of the gateway has": Publish("inline/b", b"1", 1, True, packet_id=2),
    "another QoS": Publish("b", b"1", 0, True),
}


@pytest.mark.parametrize("special", SPECIAL.values(), ids=SPECIAL)
@pytest.mark.parametrize("version", [MQTT_3_1_1, MQTT_5])
def test_a_special_one_among_others_is_what_it_is_alone(
    harness: Harness, special: Publish, version: int
) -> None:
    inline = Inline()
    harness.broker.subscribe_inline(inline, ["inline/#"])
    subscriber = harness.connect("subscriber", version)
    subscriber.subscribe("heard/#", 1)
    publisher = harness.connect("publisher", version)
    before, after = retained(["a", "c"])
    publisher.send(before, special, replace(after, packet_id=3))
    together = publisher.take(), subscriber.take(), kept(harness), len(inline.taken)

    other = Harness()
    inline = Inline()
    other.broker.subscribe_inline(inline, ["inline/#"])
    subscriber = other.connect("subscriber", version)
    subscriber.subscribe("heard/#", 1)
    publisher = other.connect("publisher", version)
    for packet in (before, special, replace(after, packet_id=3)):
        publisher.send(packet)
    assert together == (publisher.take(), subscriber.take(), kept(other), len(inline.taken))
    assert other.broker.packets() == harness.broker.packets()
    assert other.counters.values == harness.counters.values


def test_one_without_an_identifier_ends_the_connection_after_those_before_it(
    harness: Harness,
) -> None:
    publisher = harness.connect()
    data = b"".join(encode(packet, MQTT_5) for packet in retained(["a", "b"]))
    publisher.send_bytes(data + b"\x33\x06\0\1c\0\0\0")
    assert kept(harness) == {"a": b"x", "b": b"x"}
    *answers, last = publisher.take()
    assert answers == [PubAck(1, NOBODY), PubAck(2, NOBODY)]
    assert isinstance(last, Disconnect)
    assert last.reason_code == ReasonCode.PROTOCOL_ERROR


def test_one_for_which_there_is_no_room_is_refused_alone(harness: Harness) -> None:
    harness.broker.retained.maximum_messages = 3
    publisher = harness.connect()
    publisher.send(*retained(["a", "b", "c", "d", "a", "e"]))
    quota = ReasonCode.QUOTA_EXCEEDED
    codes = [NOBODY, NOBODY, NOBODY, quota, NOBODY, quota]
    assert publisher.take() == [PubAck(number, code) for number, code in enumerate(codes, 1)]
    assert list(kept(harness)) == ["a", "b", "c"]
    assert harness.counters.count("tidegate/retained/rejected") == 2


def test_the_bytes_of_a_run_are_those_of_its_messages(harness: Harness, taken: list[bool]) -> None:
    other = Harness()
    packets = retained(["a/b/c", "a/b/d", "a", "e/f", "a/b/c"], payload=b"12345")
    harness.connect().send(*packets)
    one_by_one = other.connect()
    for packet in packets:
        one_by_one.send(replace(packet, properties=Properties(payload_format_indicator=0)))
    assert taken == [True] + [False] * len(packets)
    assert harness.broker.retained.bytes == other.broker.retained.bytes > 6 * LEVEL_OVERHEAD
    harness.connect("other").send(*retained(["a/b/c", "a/b/d", "a", "e/f"], payload=b""))
    assert harness.broker.retained.bytes == 0


@pytest.mark.parametrize("version", [MQTT_3_1_1, MQTT_5])
def test_more_than_the_receive_maximum_ends_the_connection(version: int) -> None:
    harness = Harness(BrokerSettings(receive_maximum=3))
    publisher = harness.connect(version=version)
    publisher.send(*retained("abcdef"[:3]))
    publisher.send(*retained("abcdef"[:3]))  # which are acknowledged: as many again
    assert [type(packet) for packet in publisher.take()] == [PubAck] * 6
    publisher.send(*retained("abcdef"))
    answers = publisher.take()
    if version == MQTT_3_1_1:
        assert [type(packet) for packet in answers] == [PubAck] * 6
        return
    assert [type(packet) for packet in answers] == [PubAck] * 3 + [Disconnect]
    last = answers[-1]
    assert isinstance(last, Disconnect)
    assert last.reason_code == ReasonCode.RECEIVE_MAXIMUM_EXCEEDED


def test_the_receive_maximum_does_not_bound_qos_0(taken: list[bool]) -> None:
    harness = Harness(BrokerSettings(receive_maximum=3))
    harness.connect().send(*retained("abcdef", qos=0))
    assert taken == [True]
    assert len(kept(harness)) == 6


def test_peer_to_peer_topics_are_not_kept() -> None:
    harness = Harness(BrokerSettings(p2p=True))
    publisher = harness.connect("c")
    publisher.send(*retained(["$p2p/c/a", "a"]))
    assert list(kept(harness)) == ["a"]


CLASSES = (
    DurabilityEntry(None, topic_filter="memory/#"),
    DurabilityEntry(0.05, topic_filter="batch/#"),
)


def test_each_message_has_the_class_of_its_topic(taken: list[bool]) -> None:
    harness = Harness(BrokerSettings(durability=CLASSES))
    topics = ["a", "b", "memory/a", "memory/b", "batch/a", "c"]
    harness.connect().send(*retained(topics))
    assert taken == [True] * 4
    messages = [harness.broker.retained.get(topic) for topic in topics]
    classes = [None if each is None else each.commit_within for each in messages]
    assert classes == [0.0, 0.0, None, None, 0.05, 0.0]


def on_disk() -> tuple[Harness, SqliteDisk, MemoryClient]:
    disk = SqliteDisk()
    store, _ = disk.restore(0.0, 0)
    harness = Harness(BrokerSettings(durability=CLASSES), disk, store)
    return harness, disk, harness.connect()


def test_acknowledgements_wait_for_the_disk() -> None:
    harness, disk, publisher = on_disk()
    publisher.send(*retained(["a", "b"]))
    assert publisher.take() == []
    harness.commit()
    assert publisher.take() == [PubAck(1, NOBODY), PubAck(2, NOBODY)]
    _, found = disk.restore(0.0, 0)
    assert sorted(each.topic for each in found.retained) == ["a", "b"]


def test_what_is_kept_in_memory_alone_is_answered_at_once() -> None:
    harness, disk, publisher = on_disk()
    publisher.send(*retained(["memory/a", "memory/b"]))
    assert publisher.take() == [PubAck(1, NOBODY), PubAck(2, NOBODY)]
    assert disk.wanted is None
    assert len(kept(harness)) == 2


@pytest.mark.parametrize(
    ("count", "pauses"),
    [(ANSWERED_AT_ONCE - 1, 0), (ANSWERED_AT_ONCE, 0), (ANSWERED_AT_ONCE + 1, 1), (120, 2)],
)
def test_what_waits_for_no_disk_is_answered_before_all_is_handled(count: int, pauses: int) -> None:
    harness, _, publisher = on_disk()
    topics = [f"memory/{number}" for number in range(count)]
    data = b"".join(encode(each, MQTT_5) for each in retained(topics))
    answered = []
    while harness.broker.receive(publisher.client, data, harness.instant):
        data = b""
        harness.settle()
        answered.append(len(publisher.take()))
    harness.settle()
    assert answered == [ANSWERED_AT_ONCE] * pauses
    assert len(publisher.take()) == count - sum(answered)
    assert list(kept(harness)) == topics


@pytest.mark.parametrize(("topic", "qos"), [("a", 1), ("a", 0), ("memory/a", 0)])
def test_what_waits_for_the_disk_or_is_not_answered_is_handled_at_once(
    topic: str, qos: int, taken: list[bool]
) -> None:
    harness, _, publisher = on_disk()
    publisher.send(*retained([f"{topic}/{number}" for number in range(120)], qos))
    assert taken == [True]
    assert len(kept(harness)) == 120


def test_qos_0_waits_for_nothing_and_is_on_disk_soon() -> None:
    _, disk, publisher = on_disk()
    publisher.send(*retained(["a", "b"], qos=0))
    assert publisher.take() == []
    assert disk.commit() == 2


@pytest.mark.parametrize(
    ("topic", "qos", "refused"), [("a", 1, 1), ("a", 0, 0), ("memory/a", 1, 0)]
)
def test_while_nothing_can_be_promised_only_promises_are_refused(
    topic: str, qos: int, refused: int
) -> None:
    harness, disk, publisher = on_disk()
    disk.full = True
    publisher.send(*retained([topic], qos))
    assert harness.counters.count("tidegate/storage/rejected") == refused
    assert len(kept(harness)) == 1 - refused
    code = ReasonCode.QUOTA_EXCEEDED if refused else NOBODY
    assert publisher.take() == [PubAck(1, code)] * qos


def test_who_subscribes_gets_what_a_run_has_set(harness: Harness) -> None:
    harness.connect("publisher").send(*retained(["a/1", "a/2", "b"]), *retained(["a/3"], qos=0))
    own = harness.connect("subscriber")
    own.send(*retained(["a/own"]))
    own.take()
    request = SubscriptionRequest("a/#", 1, no_local=True)
    own.subscribe_all([request], identifier=7)
    found = [packet for packet in own.take() if isinstance(packet, Publish)]
    assert [(each.topic, each.qos, each.retain) for each in found] == [
        ("a/1", 1, True),
        ("a/2", 1, True),
        ("a/3", 0, True),
    ]
    assert {each.properties.subscription_identifiers for each in found} == {(7,)}


def test_a_filter_is_asked_for_each(harness: Harness) -> None:
    publisher = harness.connect("publisher")
    publisher.send(*retained(["a/1", "a/2"], payload=b'{"t":1}'), *retained(["a/3"], payload=b"{}"))
    subscriber = harness.connect("subscriber")
    subscriber.subscribe_all([SubscriptionRequest("a/#")], where="t = 1")
    assert [each.topic for each in publishes(subscriber)] == ["a/1", "a/2"]
    assert harness.broker.budget.evaluated == 3


def publishes(client: MemoryClient) -> list[Publish]:
    return [packet for packet in client.take() if isinstance(packet, Publish)]


PACKETS = st.builds(
    Publish,
    st.sampled_from(["a", "a/b", "a/b/c", "b", "heard/a", "heard/b"]),
    st.sampled_from([b"", b"1", b"22"]),
    st.sampled_from([0, 1, 1, 1, 2]),
    st.sampled_from([True, True, True, False]),
    properties=st.sampled_from([NO_PROPERTIES, NO_PROPERTIES, Properties(content_type="x")]),
)


@given(st.lists(PACKETS, max_size=12), st.sampled_from([MQTT_3_1_1, MQTT_5]), st.integers(0, 5))
def test_together_and_one_by_one_are_the_same(
    packets: list[Publish], version: int, room: int
) -> None:
    for number, packet in enumerate(packets, 1):
        packet.packet_id = number if packet.qos else 0
        if version < MQTT_5:
            packet.properties = NO_PROPERTIES
    together = outcome([packets], version, room, handled=False)
    assert together == outcome([[packet] for packet in packets], version, room, handled=True)


def outcome(
    reads: list[list[Publish]], version: int, room: int, *, handled: bool
) -> tuple[object, ...]:
    """Return everything that can be seen of a broker that got these packets in these reads.

    Where each is `handled`, none is taken as a run.
    """
    harness = Harness(disk=Disk())
    harness.broker.retained.maximum_messages = room
    subscriber = harness.connect("subscriber", version)
    subscriber.subscribe("heard/#", 2)
    publisher = harness.connect("publisher", version)
    for read in reads:
        if publisher.closed():
            break
        if handled:
            publisher.client.connection.packets_received += len(read)
            handle_publish(harness.broker, publisher.client, replace(read[0]), harness.instant)
            harness.settle()
        else:
            publisher.send(*read)
    answers: list[Packet] = publisher.take()
    traffic = harness.broker.traffic
    retained = harness.broker.retained
    return (
        [packet for packet in answers if not isinstance(packet, Publish)],
        publisher.closed(),
        subscriber.take(),
        [(each.topic, each.payload, each.qos) for each in retained.match("#", harness.now)],
        (len(retained), retained.bytes),
        harness.broker.packets() if not publisher.closed() else None,
        (traffic.messages_received, traffic.bytes_received),
        harness.counters.values,
    )

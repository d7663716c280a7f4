"""Retained messages that come one behind the other, each of its own topic."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.broker.publish import handle_publish
from gateway.broker.retained_runs import ANSWERED_AT_ONCE
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
from tests.support.broker_harness import Harness
from tests.support.held_disk import Disk
from tests.support.inline import Inline
from tests.support.memory_client import MemoryClient
from tests.support.retained_runs import NOBODY, kept, retained


@pytest.mark.parametrize("version", [MQTT_3_1_1, MQTT_5])
@pytest.mark.parametrize("qos", [0, 1])
def test_all_that_come_at_once_are_kept(
    harness: Harness, version: int, qos: int, passed_on: list[bool]
) -> None:
    publisher = harness.connect("publisher", version, username="u")
    topics = [f"a/{number}/ä" for number in range(300)]
    publisher.send(*retained(topics, qos))
    assert passed_on == [True] * (300 // ANSWERED_AT_ONCE if qos else 1)
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


def test_the_bytes_of_a_run_are_those_of_its_messages(
    harness: Harness, passed_on: list[bool]
) -> None:
    other = Harness()
    packets = retained(["a/b/c", "a/b/d", "a", "e/f", "a/b/c"], payload=b"12345")
    harness.connect().send(*packets)
    one_by_one = other.connect()
    for packet in packets:
        one_by_one.send(replace(packet, properties=Properties(payload_format_indicator=0)))
    assert passed_on == [True] + [False] * len(packets)
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


def test_the_receive_maximum_does_not_bound_qos_0(passed_on: list[bool]) -> None:
    harness = Harness(BrokerSettings(receive_maximum=3))
    harness.connect().send(*retained("abcdef", qos=0))
    assert passed_on == [True]
    assert len(kept(harness)) == 6


def test_peer_to_peer_topics_are_not_kept() -> None:
    harness = Harness(BrokerSettings(p2p=True))
    publisher = harness.connect("c")
    publisher.send(*retained(["$p2p/c/a", "a"]))
    assert list(kept(harness)) == ["a"]


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

    Where each is `handled`, none is passed_on as a run.
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

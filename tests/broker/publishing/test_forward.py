import itertools
from dataclasses import replace

import pytest

from gateway.mqtt.packets import MQTT_3_1_1, MQTT_5, PubAck, Publish, PubRec, Will
from gateway.mqtt.publish_encoder import make_publication
from gateway.mqtt.reason_codes import ReasonCode
from gateway.routing.subscriptions.subscription import Subscription
from gateway.session.queue.delivery_queue import DeliveryQueue
from gateway.session.span import SPAN_OVERHEAD
from gateway.settings.broker import MAXIMUM_INFLIGHT
from tests.support.broker.broker_harness import REFUSING, Harness
from tests.support.broker.durable_broker import DurableHarness
from tests.support.broker.inline import Inline
from tests.support.broker.payloads import payloads

QUOTA = ReasonCode.QUOTA_EXCEEDED


@pytest.fixture
def absent() -> Harness:
    """Give a broker in which `absent` is owed two messages on `a`, which is all that it can be."""
    harness = Harness(REFUSING)
    client = harness.persistent("absent")
    client.subscribe("a", 1)
    client.drop()
    session = harness.session("absent")
    session.queue = DeliveryQueue(maximum_messages=2)
    for number in range(2):
        assert harness.publish("a", b"%d" % number, qos=1) == ReasonCode.SUCCESS
    return harness


@pytest.mark.parametrize("qos", [1, 2])
def test_a_full_queue_refuses_the_message_for_everyone(absent: Harness, qos: int) -> None:
    other = absent.connect("other")
    other.subscribe("a", 1)
    publisher = absent.connect("p")
    publisher.send(Publish("a", b"2", qos, retain=True, packet_id=5))
    assert publisher.take() == [(PubAck if qos == 1 else PubRec)(5, QUOTA)]
    assert not other.take()
    assert len(absent.broker.retained) == 0
    assert absent.counters.count("publish/messages/dropped") == 1
    assert absent.counters.count("tidegate/queues/rejected") == 1


def test_qos_0_passes_by_a_full_queue(absent: Harness) -> None:
    other = absent.connect("other")
    other.subscribe("a")
    assert absent.publish("a", b"2") == ReasonCode.SUCCESS
    assert other.take() == [Publish("a", b"2")]


def test_other_topics_are_not_refused(absent: Harness) -> None:
    assert absent.publish("b", qos=1) == ReasonCode.NO_MATCHING_SUBSCRIBERS


def test_a_session_that_ends_with_its_connection_refuses_nothing(harness: Harness) -> None:
    client = harness.connect("slow")
    client.subscribe("a", 1)
    session = harness.session("slow")
    session.queue = DeliveryQueue(maximum_messages=2)
    for _ in range(MAXIMUM_INFLIGHT + 3):
        assert harness.publish("a", qos=1) == ReasonCode.SUCCESS
    assert len(session.queue) == 2
    assert harness.counters.count("publish/messages/dropped") == 1


def test_what_all_sessions_hold_back_is_bounded() -> None:
    harness = Harness(replace(REFUSING, maximum_queued_bytes_total=5_000))
    for name in ("x", "y"):
        client = harness.persistent(name)
        client.subscribe("a", 1)
        client.drop()
    here = harness.persistent("here")
    here.subscribe("b", 1)
    accepted = 0
    while harness.publish("a", b"x" * 100, qos=1) == ReasonCode.SUCCESS:
        accepted += 1
    size = make_publication("a", b"x" * 100, 1, retain=False).size(0, 1)
    of_one = size + SPAN_OVERHEAD  # which has no more than is left for others
    assert accepted == 1 + 5_000 // (size + 2 * SPAN_OVERHEAD + of_one)
    assert harness.publish("b", qos=1) == ReasonCode.SUCCESS  # it need not wait
    assert harness.publish("a") == ReasonCode.SUCCESS  # nobody keeps it
    assert harness.counters.count("tidegate/queues/rejected_for_memory") == 1
    harness.broker.queue_memory.maximum_bytes += 5_000
    assert harness.publish("a", qos=1) == ReasonCode.SUCCESS
    assert harness.broker.queue_memory.messages == accepted + 1
    for name in ("x", "y"):
        harness.persistent(name, clean_start=True)
    assert harness.broker.queue_memory.bytes == 0


def test_a_will_does_not_come_again_and_so_reaches_all_it_can(absent: Harness) -> None:
    other, inline = absent.connect("other"), Inline()
    other.subscribe("a", 1)
    absent.broker.subscribe_inline(inline, ["a"])
    inline.answer = QUOTA
    absent.broker.retained.maximum_messages = 0
    absent.connect("p", will=Will("a", b"gone", 1, retain=True)).drop()
    assert other.take() == [Publish("a", b"gone", 1, packet_id=1)]
    assert absent.counters.count("tidegate/queues/rejected") == 1
    assert absent.counters.count("tidegate/retained/rejected") == 1


@pytest.mark.parametrize("qos", [1, 2])
def test_a_full_retained_store_refuses_the_message_for_everyone(harness: Harness, qos: int) -> None:
    harness.broker.retained.maximum_messages = 1
    inline, other = Inline(), harness.connect("other")
    harness.broker.subscribe_inline(inline, ["#"])
    other.subscribe("#")
    assert harness.publish("a", qos=qos, retain=True) == ReasonCode.SUCCESS
    assert harness.publish("b", qos=qos, retain=True) == QUOTA
    assert len(inline.taken) == len(other.take()) == 1
    assert harness.publish("a", b"", qos=qos, retain=True) == ReasonCode.SUCCESS
    assert harness.publish("b", qos=qos, retain=True) == ReasonCode.SUCCESS
    assert harness.counters.count("tidegate/retained/rejected") == 1


def test_a_full_retained_store_lets_qos_0_through(harness: Harness) -> None:
    harness.broker.retained.maximum_messages = 0
    other = harness.connect("other")
    other.subscribe("#")
    assert harness.publish("a", retain=True) == ReasonCode.SUCCESS
    assert len(other.take()) == 1
    assert len(harness.broker.retained) == 0
    assert harness.counters.count("tidegate/retained/rejected") == 1


def test_an_inline_client_gets_each_message_once_with_all_its_filters(harness: Harness) -> None:
    inline = Inline()
    harness.broker.subscribe_inline(inline, ["a/+", "a/b", "#"])
    harness.publish("a/b", qos=2)
    harness.publish("c")
    assert [message.topic for message in inline.taken] == ["a/b", "c"]
    assert [sorted(filters) for filters in inline.topic_filters] == [["#", "a/+", "a/b"], ["#"]]


@pytest.fixture
def crowded(harness: Harness) -> Harness:
    """Give a broker in which a client has filters made for the topic of fifteen levels `a`.

    Those of fourteen levels meet as many nodes as a topic may, and what is below them is too much.
    """
    harness.connect("hostile")
    session = harness.session("hostile")
    for each in itertools.product("a+", repeat=14):
        harness.broker.router.add(Subscription(session, "/".join(each) + "/a", 0))
    return harness


def test_a_crowded_topic_is_refused(crowded: Harness) -> None:
    publisher = crowded.connect("p")
    for topic in ("/".join("a" * 15), "/".join("a" * 15) + "/b"):
        publisher.send(Publish(topic, qos=1, packet_id=5))
        publisher.send(Publish(topic, qos=2, packet_id=6))
        publisher.send(Publish(topic, qos=0, retain=True))
        assert publisher.take() == [PubAck(5, QUOTA), PubRec(6, QUOTA)]
    assert crowded.counters.count("tidegate/refused/crowded_topics") == 6
    assert len(crowded.broker.retained) == 0
    assert not any(client.take() for client in crowded.clients)
    assert crowded.publish("a", qos=1) == ReasonCode.NO_MATCHING_SUBSCRIBERS


@pytest.mark.parametrize("asked_first", [False, True])
@pytest.mark.parametrize("qos", [0, 1])
def test_what_is_not_retained_for_want_of_room_is_not_on_disk_either(
    qos: int, asked_first: bool
) -> None:
    harness = DurableHarness()
    if asked_first:
        harness.broker.subscribe_inline(Inline(), ["#"])
    harness.publish("a", b"1", 1, retain=True)
    harness.broker.retained.maximum_messages = 1
    harness.publish("b", b"2", qos, retain=True)
    assert harness.counters.count("tidegate/retained/rejected") == 1
    harness.pass_time(2.0)
    harness.disk.commit()
    assert harness.disk.count("retained") == 1
    harness.crash()
    assert harness.broker.retained.get("a") is not None
    assert harness.broker.retained.get("b") is None


# --- what is sent ---------------------------------------------------------------------------


@pytest.mark.parametrize("version", [MQTT_3_1_1, MQTT_5])
def test_the_maximum_packet_size_is_that_of_what_is_sent(harness: Harness, version: int) -> None:
    small = harness.connect("small", MQTT_5, maximum_packet_size=100)
    small.subscribe("a/b")
    publisher = harness.connect("publisher", version)
    publisher.send(*(Publish("a/b", bytes(size)) for size in (91, 92, 93, 92)))
    assert [len(each) for each in payloads(small.take())] == [91, 92, 92]
    assert harness.counters.count("publish/messages/dropped") == 1


def test_a_remaining_length_that_is_too_long_is_not_forwarded(harness: Harness) -> None:
    plain = harness.connect("plain", MQTT_3_1_1)
    plain.subscribe("a/b")
    packet = b"\x30\x88\x00\0\3a/bxyz"
    harness.connect("publisher", MQTT_3_1_1).send_bytes(packet * 2)
    assert payloads(plain.take()) == [b"xyz"] * 2
    assert plain.raw.endswith(b"\x30\x08\0\3a/bxyz" * 2)

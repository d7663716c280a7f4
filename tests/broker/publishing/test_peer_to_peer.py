from dataclasses import replace

import pytest

from gateway.broker.publishing.topic_admissions import addressee_of
from gateway.mqtt.packets import MQTT_3_1_1, PubAck, Publish, PubRec, SubscriptionRequest, Will
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from gateway.session.queue.delivery_queue import DeliveryQueue
from gateway.settings.broker import BrokerSettings
from tests.support.broker.broker_harness import REFUSING, Harness
from tests.support.broker.inline import Inline
from tests.support.table import table

NOBODY = ReasonCode.NO_MATCHING_SUBSCRIBERS

TOPICS = [
    ("first/p2p/c", "c"),
    ("/p2p/c", "c"),
    ("p2p/p2p/p2p", "p2p"),
    ("first/p2p/", ""),
    ("first/p2p", None),
    ("p2p/c", None),
    ("first/second/p2p/c", None),
    ("first/p2p/c/d", None),
    ("/first/p2p/c", None),
    ("first/P2P/c", None),
    ("$SYS/p2p/c", None),
    ("first", None),
]


@table(("topic", "client_id"), TOPICS)
def test_addressee(topic: str, client_id: str | None) -> None:
    assert addressee_of(topic) == client_id


@pytest.fixture
def harness() -> Harness:
    return Harness(BrokerSettings(p2p=True))


@pytest.mark.parametrize("version", [MQTT_3_1_1, 5])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_it_arrives_without_a_subscription(harness: Harness, version: int, qos: int) -> None:
    receiver, publisher = harness.connect("c", version), harness.connect("p")
    publisher.send(Publish("x/p2p/c", b"hello", qos, packet_id=4 if qos else 0))
    assert receiver.take() == [Publish("x/p2p/c", b"hello", qos, packet_id=1 if qos else 0)]
    answers = {0: [], 1: [PubAck(4)], 2: [PubRec(4)]}
    assert publisher.take() == answers[qos]


def test_it_arrives_with_its_properties(harness: Harness) -> None:
    receiver = harness.connect("c")
    properties = Properties(response_topic="x/p2p/p", correlation_data=b"1")
    harness.connect("p").send(Publish("x/p2p/c", b"?", properties=properties))
    assert receiver.take() == [Publish("x/p2p/c", b"?", properties=properties)]


def test_nobody_else_gets_it(harness: Harness) -> None:
    inline, other, receiver = Inline(), harness.connect("other"), harness.connect("c")
    harness.broker.subscribe_inline(inline, ["#"])
    for topic_filter in ("#", "+/p2p/+", "x/p2p/c", "$share/g/#"):
        other.subscribe(topic_filter)
    receiver.subscribe_all([SubscriptionRequest("x/p2p/c", 0)], identifier=7)
    receiver.subscribe_all([SubscriptionRequest("x/#", 0)], where="FALSE")
    assert harness.publish("x/p2p/c", qos=1) == ReasonCode.SUCCESS
    assert not inline.taken
    assert not other.take()
    assert receiver.take() == [Publish("x/p2p/c", b"x", 1, packet_id=1)]


def test_a_client_may_write_to_itself(harness: Harness) -> None:
    client = harness.connect()
    client.send(Publish("x/p2p/c", b"note"))
    assert client.take() == [Publish("x/p2p/c", b"note")]


@pytest.mark.parametrize("client_id", ["stranger", "gone", ""])
def test_an_unknown_client_is_told_to_the_publisher(harness: Harness, client_id: str) -> None:
    harness.connect("gone").drop()
    publisher = harness.connect("p")
    publisher.send(Publish(f"x/p2p/{client_id}", qos=1, packet_id=1))
    assert publisher.take() == [PubAck(1, NOBODY)]


def test_a_session_keeps_it_while_its_client_is_away(harness: Harness) -> None:
    harness.persistent().drop()
    for qos in (0, 1, 2):
        assert harness.publish("x/p2p/c", b"%d" % qos, qos=qos) == ReasonCode.SUCCESS
    assert harness.persistent().take() == [
        Publish("x/p2p/c", b"1", 1, packet_id=1),
        Publish("x/p2p/c", b"2", 2, packet_id=2),
    ]


def test_a_full_session_refuses_it() -> None:
    harness = Harness(replace(REFUSING, p2p=True))
    harness.persistent().drop()
    harness.session().queue = DeliveryQueue(maximum_messages=1)
    codes = [harness.publish("x/p2p/c", qos=1) for _ in range(2)]
    assert codes == [ReasonCode.SUCCESS, ReasonCode.QUOTA_EXCEEDED]
    assert harness.counters.count("tidegate/queues/rejected") == 1


def test_other_topics_are_as_ever(harness: Harness) -> None:
    receiver = harness.connect("c")
    receiver.subscribe("+/#")
    harness.publish("x/p2p", b"1")
    harness.publish("x/y/c", b"2")
    assert receiver.take() == [Publish("x/p2p", b"1"), Publish("x/y/c", b"2")]


def test_it_is_not_retained(harness: Harness) -> None:
    receiver = harness.connect("c")
    harness.publish("x/p2p/c", retain=True)
    assert receiver.take() == [Publish("x/p2p/c", b"x")]
    assert len(harness.broker.retained) == 0


def test_a_will_may_be_for_one_client(harness: Harness) -> None:
    receiver = harness.connect("c")
    harness.connect("p", will=Will("x/p2p/c", b"gone")).drop()
    assert receiver.take() == [Publish("x/p2p/c", b"gone")]


def test_topics_of_the_gateways_own_stay_so(harness: Harness) -> None:
    receiver, publisher = harness.connect("c"), harness.connect("p")
    publisher.send(Publish("$SYS/p2p/c", qos=1, packet_id=1))
    assert publisher.take() == [PubAck(1, ReasonCode.NOT_AUTHORIZED)]
    assert not receiver.take()


def test_switched_off_it_is_a_topic_like_any_other() -> None:
    harness = Harness()
    receiver, other = harness.connect("c"), harness.connect("other")
    other.subscribe("x/p2p/+")
    harness.publish("x/p2p/c", retain=True)
    assert not receiver.take()
    assert other.take() == [Publish("x/p2p/c", b"x")]
    assert len(harness.broker.retained) == 1

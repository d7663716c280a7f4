import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.mqtt.packets import (
    MQTT_3_1_1,
    ConnAck,
    Connect,
    Disconnect,
    PubAck,
    Publish,
    PubRec,
    Will,
)
from gateway.mqtt.reason_codes import ReasonCode
from gateway.mqtt.topics import TopicLimits
from gateway.settings.broker import MAXIMUM_TOPIC_LEVELS, BrokerSettings
from tests.support.broker.broker_harness import Harness
from tests.support.table import table

INVALID = ReasonCode.TOPIC_NAME_INVALID
REFUSED = "tidegate/refused/topic_names"

A_NODE = 50
"""Bytes of a node and its level at most."""

CASES = [
    ("", ""),
    ("a/b/c", ""),
    ("a/b/c/d", "has 4 levels; at most 3"),
    ("/" * 12, "has 13 levels; at most 3"),
    ("a" * 12, ""),
    ("a" * 13, "has 13 bytes; at most 12"),
    ("é" * 6, ""),
    ("é" * 6 + "a", "has 13 bytes; at most 12"),
    ("𝄞𝄞𝄞", ""),
    ("𝄞𝄞𝄞𝄞", "has 16 bytes; at most 12"),
]


@table(("topic", "fault"), CASES)
def test_fault(topic: str, fault: str) -> None:
    assert TopicLimits(3, 12).fault(topic) == fault


@given(st.text(st.sampled_from("/aé𝄞"), max_size=12), st.integers(1, 8), st.integers(1, 24))
def test_the_short_way_says_the_same(topic: str, levels: int, length: int) -> None:
    within = len(topic.split("/")) <= levels and len(topic.encode()) <= length
    assert (TopicLimits(levels, length).fault(topic) == "") == within


@pytest.fixture
def narrow() -> Harness:
    return Harness(BrokerSettings(maximum_topic_levels=3, maximum_topic_length=12))


@pytest.mark.parametrize("topic", ["a/b/c/d", "abcdefghijklm"])
def test_a_message_on_such_a_topic_is_refused(narrow: Harness, topic: str) -> None:
    receiver = narrow.connect("receiver")
    receiver.subscribe("#", 2)
    client = narrow.connect()
    client.send(Publish(topic, qos=1, packet_id=1), Publish(topic, qos=2, packet_id=2))
    assert client.take() == [PubAck(1, INVALID), PubRec(2, INVALID)]
    client.send(Publish(topic))
    assert client.take_only(Disconnect).reason_code == INVALID
    assert client.closed()
    assert not receiver.take()
    assert narrow.counters.count(REFUSED) == 3


def test_mqtt_3_1_1_is_acknowledged_or_closed(narrow: Harness) -> None:
    client = narrow.connect("old", MQTT_3_1_1)
    client.send(Publish("a/b/c/d", qos=1, packet_id=1))
    assert client.take() == [PubAck(1)]
    client.send(Publish("a/b/c/d"))
    assert not client.take()
    assert client.closed()


@pytest.mark.parametrize(("version", "code"), [(5, INVALID), (4, ReasonCode.NOT_AUTHORIZED)])
def test_a_will_on_such_a_topic_is_refused(narrow: Harness, version: int, code: ReasonCode) -> None:
    client = narrow.open(version)
    client.send(Connect("c", version, will=Will("a/b/c/d", b"")))
    assert client.take_only(ConnAck).reason_code == code
    assert narrow.counters.count(REFUSED) == 1


@pytest.mark.parametrize(
    ("topic_filter", "code"),
    [
        ("a/b/c", ReasonCode.SUCCESS),
        ("+/+/+/+", ReasonCode.TOPIC_FILTER_INVALID),
        ("abcdefghijklm", ReasonCode.TOPIC_FILTER_INVALID),
    ],
)
def test_such_a_topic_filter_is_refused(
    narrow: Harness, topic_filter: str, code: ReasonCode
) -> None:
    client = narrow.connect()
    assert client.subscribe(topic_filter) == code
    assert narrow.counters.count("tidegate/refused/topic_filters") == (code > 0)


def test_by_default_no_topic_filter_costs_much(harness: Harness) -> None:
    client = harness.connect()
    for deepest in ("/" * 65_535, "/" * (MAXIMUM_TOPIC_LEVELS - 1)):
        client.subscribe(deepest)
    assert len(harness.broker.router) == 1
    assert 0 < harness.broker.router.bytes < MAXIMUM_TOPIC_LEVELS * A_NODE


def test_by_default_a_topic_may_be_as_long_as_the_specification_lets_it(harness: Harness) -> None:
    client = harness.connect()
    client.subscribe("a" * 65_535)
    client.send(Publish("a" * 65_535, b"x"))
    assert client.take() == [Publish("a" * 65_535, b"x")]

import pytest

from gateway.broker.settings import BrokerSettings
from gateway.broker.topic_limits import MAXIMUM_TOPIC_LEVELS
from gateway.mqtt.packets import MQTT_3_1_1, MQTT_5, Disconnect, Publish, SubAck, Subscribe
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.broker_harness import Harness
from tests.support.subscribing import request, topics

VERSIONS = (MQTT_3_1_1, MQTT_5)
QUOTA = ReasonCode.QUOTA_EXCEEDED


# --- granting -------------------------------------------------------------------------------


TOO_DEEP = "/" * MAXIMUM_TOPIC_LEVELS


def test_each_topic_filter_is_answered(harness: Harness) -> None:
    client = harness.connect()
    client.send(Subscribe(5, [request("a", 0), request(TOO_DEEP, 1), request("e", 2)]))
    codes = [ReasonCode.SUCCESS, ReasonCode.TOPIC_FILTER_INVALID, ReasonCode.GRANTED_QOS_2]
    assert client.take() == [SubAck(5, codes)]
    assert {one.topic_filter for _, one in harness.broker.router.subscriptions()} == {"a", "e"}


def test_mqtt_3_1_1_is_told_of_a_refusal_with_0x80(harness: Harness) -> None:
    client = harness.connect("c", MQTT_3_1_1)
    client.send(Subscribe(5, [request(TOO_DEEP, 1), request("a", 1)]))
    assert client.raw.endswith(b"\x90\x04\x00\x05\x80\x01")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("filters", [["b/#/c"], ["a", ""], ["a+", "a"], ["a", "$share/g", "b"]])
def test_one_invalid_filter_ends_the_connection_and_none_takes_effect(
    harness: Harness, version: int, filters: list[str]
) -> None:
    client = harness.connect("c", version)
    client.send(Subscribe(5, [request(each) for each in filters]))
    assert client.closed()
    codes = [packet.reason_code for packet in client.take() if isinstance(packet, Disconnect)]
    assert codes == [ReasonCode.MALFORMED_PACKET] * (version == MQTT_5)
    assert len(harness.broker.router) == 0


@pytest.mark.parametrize(
    ("granted", "published", "delivered"),
    [(granted, qos, min(granted, qos)) for granted in (0, 1, 2) for qos in (0, 1, 2)],
)
def test_the_lower_qos_counts(
    harness: Harness, granted: int, published: int, delivered: int
) -> None:
    client = harness.connect()
    client.subscribe("a", granted)
    harness.publish("a", qos=published)
    (publish,) = client.take()
    assert isinstance(publish, Publish)
    assert publish.qos == delivered


def test_the_number_of_subscriptions_is_bounded() -> None:
    harness = Harness(BrokerSettings(maximum_subscriptions=2))
    client = harness.connect()
    codes = client.subscribe_all([request(name) for name in ("a", "b", "c", "a")]).reason_codes
    assert codes == [ReasonCode.SUCCESS, ReasonCode.SUCCESS, QUOTA, ReasonCode.SUCCESS]
    assert harness.counters.count("tidegate/refused/subscriptions") == 1


def test_what_all_subscriptions_occupy_is_bounded() -> None:
    harness = Harness(BrokerSettings(maximum_subscription_bytes=2_000))
    first, second = harness.connect("first"), harness.connect("second")
    names = [f"a/{number}" for number in range(100)]
    granted = next(count for count, name in enumerate(names) if first.subscribe(name) == QUOTA)
    assert 20 < granted < 90
    harness.counters.set("tidegate/refused/subscriptions", 0)
    assert second.subscribe("c") == QUOTA
    assert first.subscribe("a/0", 1) == ReasonCode.GRANTED_QOS_1  # in place of the one it has
    first.drop()
    assert second.subscribe("c") == ReasonCode.SUCCESS
    assert harness.counters.count("tidegate/refused/subscriptions") == 1


def test_a_subscription_is_replaced(harness: Harness) -> None:
    client = harness.connect()
    client.subscribe("a", 2)
    client.subscribe("a", 0)
    harness.publish("a", qos=2)
    assert client.take() == [Publish("a", b"x")]
    assert len(harness.broker.router) == 1


# --- overlapping, No Local, shared ----------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_overlapping_subscriptions_give_one_copy_at_the_highest_qos(
    harness: Harness, version: int
) -> None:
    client = harness.connect("c", version)
    for topic_filter, qos in [("a/b", 0), ("a/+", 2), ("#", 1)]:
        client.subscribe(topic_filter, qos)
    harness.publish("a/b", qos=2)
    assert client.take() == [Publish("a/b", b"x", 2, packet_id=1)]


def test_every_subscription_identifier_that_matched_is_given(harness: Harness) -> None:
    client = harness.connect()
    client.subscribe_all([request("a/b")], identifier=7)
    client.subscribe_all([request("a/+")], identifier=268_435_455)
    client.subscribe_all([request("#")])
    harness.publish("a/b")
    harness.publish("a/c")
    harness.publish("b")
    identifiers = [
        set(packet.properties.subscription_identifiers)
        for packet in client.take()
        if isinstance(packet, Publish)
    ]
    assert identifiers == [{7, 268_435_455}, {268_435_455}, set()]


def test_a_replaced_subscription_has_the_new_identifier(harness: Harness) -> None:
    client = harness.connect()
    client.subscribe_all([request("a")], identifier=7)
    client.subscribe_all([request("a")], identifier=8)
    harness.publish("a")
    (publish,) = client.take()
    assert isinstance(publish, Publish)
    assert publish.properties.subscription_identifiers == (8,)


def test_no_local(harness: Harness) -> None:
    client, other = harness.connect(), harness.connect("other")
    client.subscribe("a", no_local=True)
    client.subscribe("b")
    client.send(Publish("a"), Publish("b"))
    assert topics(client.take()) == ["b"]
    other.send(Publish("a"))
    assert topics(client.take()) == ["a"]


def test_a_shared_subscription_gives_each_message_to_one(harness: Harness) -> None:
    members = [harness.connect(f"m{number}") for number in range(3)]
    for member in members:
        member.subscribe("$share/g/a/+", 1)
    for _ in range(9):
        harness.publish("a/b", qos=1)
    assert [len(member.take()) for member in members] == [3, 3, 3]


def test_a_member_has_its_own_subscriptions_beside_the_shared_one(harness: Harness) -> None:
    client = harness.connect()
    client.subscribe("$share/g/a")
    client.subscribe("a")
    harness.publish("a")
    assert topics(client.take()) == ["a", "a"]


def test_system_topics_need_to_be_named(harness: Harness) -> None:
    harness.publish("$SYS/broker/uptime", retain=True)
    client = harness.connect()
    client.subscribe("#")
    client.subscribe("+/broker/uptime")
    assert not client.take()
    client.subscribe("$SYS/#")
    assert topics(client.take()) == ["$SYS/broker/uptime"]

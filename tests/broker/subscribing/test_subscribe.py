from dataclasses import replace

import pytest

from gateway.mqtt.packets import (
    MQTT_3_1_1,
    MQTT_5,
    Disconnect,
    Publish,
    SubAck,
    Subscribe,
    Unsubscribe,
)
from gateway.mqtt.reason_codes import ReasonCode
from gateway.settings.broker import MAXIMUM_TOPIC_LEVELS, BrokerSettings
from tests.support.broker.broker_harness import UNSHARED, Harness
from tests.support.broker.subscribing import request

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


def test_the_number_of_subscriptions_is_bounded() -> None:
    harness = Harness(BrokerSettings(maximum_subscriptions=2))
    client = harness.connect()
    codes = client.subscribe_all([request(name) for name in ("a", "b", "c", "a")]).reason_codes
    assert codes == [ReasonCode.SUCCESS, ReasonCode.SUCCESS, QUOTA, ReasonCode.SUCCESS]
    assert harness.counters.count("tidegate/refused/subscriptions") == 1


def test_what_all_subscriptions_occupy_is_bounded() -> None:
    harness = Harness(replace(UNSHARED, maximum_subscription_bytes=2_000))
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


# --- overlapping, No Local, shared ----------------------------------------------------------


def test_one_client_has_so_many_shared_subscriptions() -> None:
    harness = Harness(BrokerSettings(maximum_shared_subscriptions=2))
    client, other = harness.connect("c"), harness.connect("other")
    for name in ("g", "h"):
        assert client.subscribe(f"$share/{name}/t") == ReasonCode.SUCCESS
    assert client.subscribe("$share/i/t") == ReasonCode.QUOTA_EXCEEDED
    assert client.subscribe("$share/g/t", 1) == ReasonCode.GRANTED_QOS_1  # in place of the last
    assert client.subscribe("t") == ReasonCode.SUCCESS
    assert other.subscribe("$share/i/t") == ReasonCode.SUCCESS
    assert harness.counters.count("tidegate/refused/subscriptions") == 1
    client.send(Unsubscribe(9, ["$share/h/t"]))
    client.take()
    assert client.subscribe("$share/i/t") == ReasonCode.SUCCESS
    assert harness.broker.router.sharing(harness.broker.sessions["c"]) == 2


# --- bridges before MQTT 5 -------------------------------------------------------------------


def test_a_bridge_gets_nothing_of_its_own_and_retained_messages_as_published(
    harness: Harness,
) -> None:
    bridge = harness.connect("mill", MQTT_3_1_1, bridge=True)
    other = harness.connect("c", MQTT_3_1_1)
    bridge.send(Subscribe(1, [request("a/#", 1), request("$share/g/b", 1)]))
    bridge.take()
    assert {
        (one.topic_filter, one.no_local) for _, one in harness.broker.router.subscriptions()
    } == {
        ("a/#", True),
        ("$share/g/b", False),  # where No Local is an error
    }
    bridge.send(Publish("a/own", b"1", 0))
    other.send(Publish("a/other", b"2", 0, retain=True))
    assert bridge.take() == [Publish("a/other", b"2", 0, retain=True)]

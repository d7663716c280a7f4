from dataclasses import replace

from gateway.mqtt.packets import MQTT_3_1_1, Publish, Subscribe, Unsubscribe
from gateway.mqtt.reason_codes import ReasonCode
from gateway.settings.broker import BrokerSettings
from tests.support.broker.broker_harness import UNSHARED, Harness
from tests.support.broker.subscribing import request

QUOTA = ReasonCode.QUOTA_EXCEEDED


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

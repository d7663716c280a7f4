import pytest

from gateway.broker.subscribing.expressions import SubscriptionFilters
from gateway.mqtt.packets import MQTT_3_1_1, MQTT_5, Publish, Subscribe, SubscriptionRequest
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from gateway.settings.broker import BrokerSettings, SubscriptionFilter
from tests.support.broker.broker_harness import Harness
from tests.support.broker.memory_client import MemoryClient

VERSIONS = (MQTT_3_1_1, MQTT_5)


@pytest.mark.parametrize(
    ("client", "matching", "others"),
    [
        ("panel", ["panel"], ["panel1", "Panel", "apanel"]),
        ("panel-*", ["panel-", "panel-1"], ["panel", "my-panel-1"]),
        ("*", ["", "a*b", "温度"], []),
        ("a*b*c", ["abc", "a-b-bc"], ["acb"]),
        ("a_%?[b]", ["a_%?[b]"], ["axy?b"]),
    ],
)
def test_client_identifiers(client: str, matching: list[str], others: list[str]) -> None:
    filters = SubscriptionFilters([SubscriptionFilter(client, "a/#", "qos = 1")])
    assert all(filters.find(each, "a/#") for each in matching)
    assert not any(filters.find(each, "a/#") for each in others)
    assert filters.find(matching[0], "a/+") is None


def test_the_first_entry_counts_and_equal_expressions_are_compiled_once() -> None:
    filters = SubscriptionFilters(
        [
            SubscriptionFilter("a*", "t", "qos = 1"),
            SubscriptionFilter("*", "t", "qos = 2"),
            SubscriptionFilter("*", "u", "qos = 1"),
        ]
    )
    first, second = filters.find("a", "t"), filters.find("b", "t")
    assert first is not None
    assert second is not None
    assert (first.text, second.text) == ("qos = 1", "qos = 2")
    assert filters.find("b", "u") is first


@pytest.fixture
def harness() -> Harness:
    attached = SubscriptionFilter("panel-*", "sensors/#", "payload.value > 20")
    return Harness(BrokerSettings(subscription_filters=(attached,)))


def values(client: MemoryClient) -> list[bytes]:
    return [packet.payload for packet in client.take() if isinstance(packet, Publish)]


@pytest.mark.parametrize("version", VERSIONS)
def test_an_expression_is_attached(harness: Harness, version: int) -> None:
    harness.publish("sensors/a", b'{"value":5}', retain=True)
    harness.publish("sensors/b", b'{"value":25}', retain=True)
    panel = harness.connect("panel-1", version)
    other = harness.connect("other", version)
    for client in (panel, other):
        assert client.subscribe("sensors/#") == ReasonCode.SUCCESS
    assert (len(values(panel)), len(values(other))) == (1, 2)
    for value in (b'{"value":19}', b'{"value":21}', b"x"):
        harness.publish("sensors/a", value)
    assert values(panel) == [b'{"value":21}']
    assert len(values(other)) == 3


def test_another_topic_filter_is_left_alone(harness: Harness) -> None:
    panel = harness.connect("panel-1", MQTT_3_1_1)
    panel.subscribe("sensors/+")
    harness.publish("sensors/a", b'{"value":5}')
    assert len(values(panel)) == 1


def test_a_where_of_its_own_comes_first(harness: Harness) -> None:
    panel = harness.connect("panel-1")
    properties = Properties(user_properties=(("$where", "payload.value < 20"),))
    panel.send(Subscribe(5, [SubscriptionRequest("sensors/#", 0)], properties))
    for value in (b'{"value":19}', b'{"value":21}'):
        harness.publish("sensors/a", value)
    assert values(panel) == [b'{"value":19}']

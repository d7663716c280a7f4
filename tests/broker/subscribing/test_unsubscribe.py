import pytest

from gateway.mqtt.packets import MQTT_3_1_1, MQTT_5, Disconnect, UnsubAck, Unsubscribe
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.broker.broker_harness import Harness


@pytest.mark.parametrize("version", [MQTT_3_1_1, MQTT_5])
@pytest.mark.parametrize("filters", [["a#"], ["a", ""], ["$share//a", "a"]])
def test_one_invalid_filter_ends_the_connection_and_none_is_given_up(
    harness: Harness, version: int, filters: list[str]
) -> None:
    client = harness.persistent("c", version)
    client.subscribe("a")
    client.send(Unsubscribe(5, filters))
    assert client.closed()
    codes = [packet.reason_code for packet in client.take() if isinstance(packet, Disconnect)]
    assert codes == [ReasonCode.MALFORMED_PACKET] * (version == MQTT_5)
    assert len(harness.broker.router) == 1


def test_where_means_nothing_here(harness: Harness) -> None:
    client = harness.connect()
    client.subscribe("a")
    properties = Properties(user_properties=(("$where", "not an expression ("),))
    client.send(Unsubscribe(9, ["a"], properties))
    assert client.take() == [UnsubAck(9, [ReasonCode.SUCCESS])]

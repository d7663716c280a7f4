"""A client that is accepted: what it is told, and what becomes of who had its session before."""

from gateway.mqtt.packets import Disconnect
from gateway.mqtt.properties import Properties
from gateway.settings.broker import BrokerSettings
from tests.support.broker.broker_harness import Harness


def test_mqtt_5_is_told_the_limits_and_that_where_is_understood() -> None:
    harness = Harness(
        BrokerSettings(maximum_packet_size=5_000, topic_alias_maximum=3, receive_maximum=20)
    )
    assert harness.connect().connack.properties == Properties(
        receive_maximum=20,
        maximum_packet_size=5_000,
        topic_alias_maximum=3,
        user_properties=(("$where", "1"),),
    )


def test_a_take_over_of_a_connection_that_is_closing_already(harness: Harness) -> None:
    first = harness.persistent()
    first.reads = False
    first.send(Disconnect())
    second = harness.persistent()
    assert second.connack.session_present
    first.reads = True
    harness.settle()
    assert first.closed()
    assert not first.take()
    assert list(harness.broker.clients) == ["c"]

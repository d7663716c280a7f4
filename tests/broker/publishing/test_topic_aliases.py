"""Topic aliases between a broker and its clients, both ways."""

import pytest

from gateway.mqtt.packets import Disconnect, Publish
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from gateway.settings.broker import BrokerSettings
from tests.support.broker.aliases import TOPIC, subscriber, taken
from tests.support.broker.broker_harness import Harness
from tests.support.table import table


def with_alias(topic: str, alias: int) -> Publish:
    return Publish(topic, b"x", properties=Properties(topic_alias=alias))


# --- in ---------------------------------------------------------------------------------------


@pytest.mark.uncovered
@table("maximum", [0, 3])
@table("topic", ["", TOPIC])
@table("over", [0, 1, 65_535])
def test_an_alias_out_of_range_is_invalid(maximum: int, topic: str, over: int) -> None:
    harness = Harness(BrokerSettings(topic_alias_maximum=maximum))
    client = harness.connect()
    assert client.connack.properties.topic_alias_maximum == (maximum or None)
    client.send(with_alias(topic, over and min(maximum + over, 65_535)))
    (disconnect,) = client.take()
    assert isinstance(disconnect, Disconnect)
    assert disconnect.reason_code == ReasonCode.TOPIC_ALIAS_INVALID
    assert client.closed()


def test_a_publishers_alias_is_not_passed_on(harness: Harness) -> None:
    plain, aliased = subscriber(harness, None, "plain"), subscriber(harness, 2, "aliased")
    absent = harness.persistent("absent")
    absent.subscribe("#", 1)
    absent.drop()
    publisher = harness.connect()
    for topic in (TOPIC, ""):
        publisher.send(Publish(topic, b"x", 1, packet_id=1, properties=Properties(topic_alias=9)))
    assert taken(plain) == [(TOPIC, None)] * 2
    assert taken(aliased) == [(TOPIC, 1), ("", 1)]
    assert taken(harness.persistent("absent")) == [(TOPIC, None)] * 2


def test_a_retained_message_has_no_alias_either(harness: Harness) -> None:
    publisher = harness.connect()
    publisher.send(with_alias(TOPIC, 9))
    publisher.send(Publish("", b"x", 0, True, properties=Properties(topic_alias=9)))
    assert taken(subscriber(harness, None)) == [(TOPIC, None)]


def test_a_new_connection_knows_no_alias_of_the_one_before(harness: Harness) -> None:
    client = harness.persistent("c")
    client.send(with_alias(TOPIC, 1))
    client.drop()
    client = harness.persistent("c")
    assert harness.broker.inbound_alias_figures.bytes_held == 0
    client.send(with_alias("", 1))
    (disconnect,) = client.take()
    assert isinstance(disconnect, Disconnect)
    assert disconnect.reason_code == ReasonCode.PROTOCOL_ERROR


def test_what_aliases_in_do_is_counted(harness: Harness) -> None:
    client = harness.connect()
    for topic in (TOPIC, "", ""):
        client.send(with_alias(topic, 1))
    figures = harness.broker.inbound_alias_figures.values()
    length = len(TOPIC)
    assert figures["hits"] == 2
    assert figures["mappings"] == 1
    assert figures["bytes_saved"] == 2 * length - 3 * 3
    assert figures["bytes_held"] == length
    client.drop()
    assert harness.broker.inbound_alias_figures.bytes_held == 0

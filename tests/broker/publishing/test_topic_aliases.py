"""What topic aliases of publishers save."""

from gateway.mqtt.packets import Publish
from gateway.mqtt.properties import Properties
from tests.support.broker.aliases import TOPIC
from tests.support.broker.broker_harness import Harness


def with_alias(topic: str, alias: int) -> Publish:
    return Publish(topic, b"x", properties=Properties(topic_alias=alias))


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

"""A QoS 1 or 2 subscriber that stops acknowledging, and what that means for everyone else."""

import pytest

from gateway.mqtt.connection import MAXIMUM_UNSENT
from gateway.mqtt.packets import MQTT_3_1_1, MQTT_5, Publish
from gateway.settings.broker import BrokerSettings
from gateway.settings.when_full import WhenFull
from tests.support.broker.broker_harness import Harness
from tests.support.broker.payloads import payloads

WINDOW, QUEUE = 2, 3


@pytest.fixture
def harness() -> Harness:
    return Harness(
        BrokerSettings(
            maximum_inflight=WINDOW, maximum_queued_messages=QUEUE, queue_when_full=WhenFull.REJECT
        )
    )


@pytest.mark.parametrize("version", [MQTT_3_1_1, MQTT_5])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_it_may_be_its_own_publisher(harness: Harness, version: int, qos: int) -> None:
    client = harness.connect("c", version)
    client.subscribe("a")
    client.reads = False
    for number in range(1, 41):
        client.send(Publish("a", bytes(100_000), qos, packet_id=number * (qos > 0)))
    assert client.client.connection.output.size < MAXIMUM_UNSENT + 2 * 100_000
    assert len(harness.session("c").queue) == QUEUE
    client.reads = True
    harness.settle()
    assert len(payloads(client.take())) == MAXIMUM_UNSENT // 100_000 + 1 + QUEUE

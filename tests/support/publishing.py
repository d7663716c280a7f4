"""Whom tests of publishing publish to."""

from gateway.mqtt.packets import MQTT_5
from tests.support.broker_harness import Harness
from tests.support.memory_client import MemoryClient


def subscriber(harness: Harness, version: int = MQTT_5, qos: int = 2) -> MemoryClient:
    client = harness.connect("subscriber", version)
    client.subscribe("#", qos)
    return client

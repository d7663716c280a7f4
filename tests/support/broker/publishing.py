"""Whom tests of publishing publish to, and what."""

from gateway.mqtt.packets import MQTT_5, PubAck, Publish, PubRec
from tests.support.broker.broker_harness import Harness
from tests.support.broker.memory_client import MemoryClient


def subscriber(harness: Harness, version: int = MQTT_5, qos: int = 2) -> MemoryClient:
    client = harness.connect("subscriber", version)
    client.subscribe("#", qos)
    return client


def batch(count: int, qos: int, first: int = 1, topic: str = "a/b") -> list[Publish]:
    """Return so many messages that differ in packet identifier and payload, a number, alone."""
    return [
        Publish(topic, b"%d" % number, qos, packet_id=number if qos else 0)
        for number in range(first, first + count)
    ]


def published(client: MemoryClient) -> list[Publish]:
    """Return the PUBLISH packets that came since the last time, without the others."""
    return [packet for packet in client.take() if isinstance(packet, Publish)]


def acknowledge(client: MemoryClient) -> None:
    """Answer what has come at QoS 1, in one read."""
    client.send(*(PubAck(each.packet_id) for each in published(client) if each.qos))


def codes(client: MemoryClient) -> list[int]:
    """Return the reason codes of the publisher's answers."""
    return [each.reason_code for each in client.take() if isinstance(each, PubAck | PubRec)]

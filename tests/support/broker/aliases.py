"""Publishers and subscribers with topic aliases."""

from gateway.mqtt.packets import Packet, Publish
from gateway.mqtt.properties import Properties
from tests.support.broker.broker_harness import Harness
from tests.support.broker.memory_client import MemoryClient

TOPIC = "site/floor/device/temperature"


def alias_of(packet: Packet) -> tuple[str, int | None]:
    assert isinstance(packet, Publish), packet
    return packet.topic, packet.properties.topic_alias


def taken(client: MemoryClient) -> list[tuple[str, int | None]]:
    """The topic name and the topic alias of each PUBLISH that came since the last time."""
    return [alias_of(packet) for packet in client.take()]


def subscriber(
    harness: Harness, maximum: int | None = 2, client_id: str = "s", **fields: object
) -> MemoryClient:
    properties = Properties(topic_alias_maximum=maximum, **fields)  # type: ignore[arg-type]  # by name
    client = harness.connect(client_id, properties=properties)
    client.subscribe("#", 2)
    return client

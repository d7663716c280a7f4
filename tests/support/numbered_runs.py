"""Messages of QoS 1 and 2 that are sent in runs, and where the broker's runs begin."""

from gateway.mqtt.packets import Packet, Publish
from tests.support.memory_client import MemoryClient

PASS_ON = "gateway.broker.broker.pass_on"
PASS_ON_AGAIN = "gateway.broker.broker.pass_on_again"
TAKE_ALONE = "gateway.broker.broker.take_alone"
TAKE_RUN = "gateway.broker.broker.take_run"


def publishes(count: int, qos: int, first: int = 1) -> list[Packet]:
    return [
        Publish("a/b", b"%d" % number, qos, packet_id=number)
        for number in range(first, first + count)
    ]


def published(client: MemoryClient) -> list[Publish]:
    return [packet for packet in client.take() if isinstance(packet, Publish)]

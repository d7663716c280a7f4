"""Messages of QoS 0 that are sent in runs."""

from typing import Any

from gateway.mqtt.packets import Publish
from tests.support.memory_client import MemoryClient


def send(publisher: MemoryClient, count: int, **fields: Any) -> None:
    publisher.send(*(Publish("a/b", b"%03d" % number, **fields) for number in range(count)))

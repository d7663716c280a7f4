"""A paho client that publishes numbered readings with QoS 1 and knows which were acknowledged."""

import threading
from typing import Any

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

from tests.support.waiting import SECONDS, until


class SensorClient:
    """Publishes `{"value": n}` for n = 1, 2, 3 …, at most 65,535 of them."""

    def __init__(
        self, port: int, topic: str, version: MQTTProtocolVersion = MQTTProtocolVersion.MQTTv5
    ) -> None:
        self.topic = topic
        self._numbers: dict[int, int] = {}  # by packet identifier
        self._acknowledged: set[int] = set()  # packet identifiers; written by paho's thread
        connected = threading.Event()
        self._client = paho.Client(CallbackAPIVersion.VERSION2, protocol=version)
        self._client.max_inflight_messages_set(1000)
        self._client.on_connect = lambda *_: connected.set()
        self._client.on_publish = self._on_publish
        self._client.connect("127.0.0.1", port)
        self._client.loop_start()
        assert connected.wait(SECONDS), "no CONNACK"

    @property
    def acknowledged(self) -> set[int]:
        """Every n that has its PUBACK."""
        return {self._numbers[packet_id] for packet_id in list(self._acknowledged)}

    def publish(self, count: int) -> None:
        """Publish the next `count` numbers and return at once."""
        for number in range(len(self._numbers) + 1, len(self._numbers) + 1 + count):
            info = self._client.publish(self.topic, b'{"value": %d}' % number, qos=1)
            self._numbers[info.mid] = number

    def wait(self, count: int) -> None:
        """Return when `count` numbers in all are acknowledged."""
        until(lambda: len(self._acknowledged) >= count, f"{count} acknowledgements")

    def close(self) -> None:
        """Disconnect and end the thread."""
        self._client.disconnect()
        self._client.loop_stop()

    def _on_publish(self, _client: Any, _data: Any, packet_id: int, code: Any, _more: Any) -> None:
        if not code.is_failure:
            self._acknowledged.add(packet_id)

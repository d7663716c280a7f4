"""Clients of paho-mqtt: one that publishes and hears what came of it, one whose session waits."""

from queue import Queue
from typing import Any

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

from tests.support.waiting import SECONDS, until


class Publisher:
    """Publishes one message after the other and says what became of each."""

    def __init__(self, port: int, version: MQTTProtocolVersion = MQTTProtocolVersion.MQTTv5):
        self._codes: Queue[int] = Queue()
        self.disconnects = 0
        self._connected = False
        self._client = paho.Client(CallbackAPIVersion.VERSION2, "publisher", protocol=version)
        self._client.on_publish = self._on_publish
        self._client.on_connect = self._on_connect
        self._client.on_disconnect = self._on_disconnect
        self._client.connect("127.0.0.1", port)
        self._client.loop_start()
        until(lambda: self._connected, "CONNACK")

    def publish(self, topic: str, payload: bytes, qos: int = 1, *, retain: bool = False) -> int:
        """Return the reason code of the answer."""
        self._client.publish(topic, payload, qos, retain)
        return self._codes.get(timeout=SECONDS)

    def send(self, topic: str, payload: bytes, qos: int = 1) -> None:
        """Wait for no answer."""
        self._client.publish(topic, payload, qos)

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def _on_publish(
        self, _client: object, _data: object, _number: int, code: Any, _: object
    ) -> None:
        self._codes.put(code.value)

    def _on_connect(self, *_: object) -> None:
        self._connected = True

    def _on_disconnect(self, *_: object) -> None:
        self.disconnects += 1


class SessionAway:
    """A persistent session with a subscription, whose client is not there."""

    def __init__(self, port: int, topic_filter: str) -> None:
        self._port = port
        self._received: Queue[str] = Queue()
        client = self._connected()
        client.subscribe(topic_filter, qos=1)
        self._received.get(timeout=SECONDS)  # the SUBACK
        client.disconnect()
        client.loop_stop()

    def comes_back(self) -> list[str]:
        """Return the topics of what it was owed."""
        client = self._connected()
        topics = [self._received.get(timeout=SECONDS)]
        client.disconnect()
        client.loop_stop()
        while not self._received.empty():
            topics.append(self._received.get())
        return topics

    def _connected(self) -> paho.Client:
        version = MQTTProtocolVersion.MQTTv311
        client = paho.Client(
            CallbackAPIVersion.VERSION2, "away", clean_session=False, protocol=version
        )
        connected: Queue[None] = Queue()
        client.on_connect = lambda *_: connected.put(None)
        client.on_subscribe = lambda *_: self._received.put("")
        client.on_message = lambda *parts: self._received.put(parts[2].topic)
        client.connect("127.0.0.1", self._port)
        client.loop_start()
        connected.get(timeout=SECONDS)
        return client

"""What the dashboard would hear of a gateway, from a Mosquitto that stands for it."""

from threading import Event

from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

from tests.support.waiting import SECONDS, until
from tui.topics import Topics

TOPICS = Topics("told", "sensors/#", "order/uplink")
"""Mosquitto keeps topics with `$` for itself."""
FIGURES = "told/broker/"


class Publisher:
    """Publishes what a gateway and its sensors would, and hears orders."""

    def __init__(self, port: int) -> None:
        self.orders: list[str] = []
        self._client = Client(CallbackAPIVersion.VERSION2, protocol=MQTTProtocolVersion.MQTTv5)
        self._client.on_message = lambda _client, _userdata, message: self.orders.append(
            bytes(message.payload).decode() + message.topic.removeprefix(TOPICS.uplink_order)
        )
        subscribed = Event()
        self._client.on_subscribe = lambda *_: subscribed.set()
        self._client.connect("127.0.0.1", port)
        self._client.loop_start()
        until(self._client.is_connected, "the publisher is connected")
        self._client.subscribe(f"{TOPICS.uplink_order}/#", 1)
        until(subscribed.is_set, "SUBACK")

    def tell(self, **figures: object) -> None:
        """Publish retained figures; `__` in a name stands for `/`."""
        for name, value in figures.items():
            self.publish(FIGURES + name.replace("__", "/"), str(value).encode(), retain=True)

    def publish(self, topic: str, payload: bytes, *, retain: bool = False) -> None:
        """Publish, and return when the broker has it."""
        self._client.publish(topic, payload, qos=1, retain=retain).wait_for_publish(SECONDS)

    def close(self) -> None:
        """Disconnect."""
        self._client.disconnect()
        self._client.loop_stop()

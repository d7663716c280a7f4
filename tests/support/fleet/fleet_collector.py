"""A subscriber at the fleet's broker, as the pipeline's collector would be."""

import threading
from base64 import b64decode
from dataclasses import dataclass
from typing import Any

from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from pipeline.records.batch import read_batch
from tests.support.waiting import SECONDS


@dataclass(slots=True)
class Received:
    """One message as it arrived; `properties` are the user properties in wire order."""

    topic: str
    payload: bytes
    retain: bool
    properties: list[tuple[str, str]]
    raw: Any

    def first(self, name: str) -> str | None:
        """Return the first value of `name`."""
        return next((value for key, value in self.properties if key == name), None)

    @property
    def name(self) -> tuple[str, str, int]:
        """Epoch, stream and number."""
        epoch, stream, number = (self.first("seq") or "").split(".")
        return epoch, stream, int(number)


class FleetCollector:
    """Receives everything below `topic_filter` in a session that survives the broker's end."""

    def __init__(
        self, port: int, topic_filter: str = "tidegate/#", name: str = "collector"
    ) -> None:
        self.received: list[Received] = []
        self._filter = topic_filter
        self._subscribed = threading.Event()
        self._client = Client(
            CallbackAPIVersion.VERSION2, name, protocol=MQTTProtocolVersion.MQTTv5
        )
        self._client.reconnect_delay_set(1, 1)
        self._client.on_connect = self._on_connect
        self._client.on_subscribe = self._on_subscribe
        self._client.on_message = self._on_message
        session = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]  # not annotated
        session.SessionExpiryInterval = 3_600
        self._client.connect("127.0.0.1", port, clean_start=False, properties=session)
        self._client.loop_start()
        assert self._subscribed.wait(SECONDS), "no SUBACK"

    @property
    def data(self) -> list[Received]:
        """The data messages so far."""
        return [message for message in list(self.received) if "/data/" in message.topic]

    def publish(
        self, topic: str, payload: bytes, *pairs: tuple[str, str], retain: bool = False
    ) -> None:
        """Publish with QoS 1 and these user properties; return when the broker has it."""
        properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]  # not annotated
        properties.UserProperty = list(pairs)
        sent = self._client.publish(topic, payload, 1, retain, properties)
        sent.wait_for_publish(SECONDS)

    def close(self) -> None:
        """Disconnect and end the thread."""
        self._client.disconnect()
        self._client.loop_stop()
        # paho's thread may see that it is to end before it has closed the socket
        if (socket := self._client.socket()) is not None:
            socket.close()

    def _on_connect(self, client: Client, *_: object) -> None:
        client.subscribe(self._filter, options=SubscribeOptions(qos=1, retainAsPublished=True))

    def _on_subscribe(self, *_: object) -> None:
        self._subscribed.set()

    def _on_message(self, _client: Client, _data: object, message: MQTTMessage) -> None:
        raw = message.properties
        assert raw is not None
        prefix, _, suffix = message.topic.rpartition("/")
        if suffix == "batch":
            gateway_id = prefix.rpartition("/")[2]
            for record in read_batch(bytes(message.payload), gateway_id, 0):
                self.received.append(_received(f"{prefix}/data/", record, raw))
            return
        pairs = list(getattr(raw, "UserProperty", []))
        self.received.append(
            Received(message.topic, bytes(message.payload), message.retain, pairs, raw)
        )


def _received(prefix: str, record: dict[str, Any], raw: object) -> Received:
    """Return a message of a batch as it would have come alone."""
    pairs = [("seq", f"{record['epoch']}.{record['stream']}.{record['seq']}")]
    pairs.append(("time", str(record["time"])))
    if record["resent"]:
        pairs.append(("resent", "1"))
    pairs.extend((name, value) for name, value in record["properties"])
    return Received(prefix + record["topic"], b64decode(record["payload"]), False, pairs, raw)

"""A publisher and a subscriber whose QoS 1 messages come alone."""

from gateway.broker.lone_numbered_way import LoneNumberedWay
from gateway.mqtt.encode import encode
from gateway.mqtt.packets import MQTT_5, PubAck, Publish
from tests.support.broker_harness import Harness
from tests.support.wire import Wire

TOPIC = "plant/line-1/device-7/telemetry"

SHORT = 2 + 0x7F
"""Bytes of the longest packet whose remaining length is a single byte (section 2.1.4)."""


class Pair:
    """A publisher that has a way to a subscriber."""

    def __init__(
        self, version: int = MQTT_5, harness: Harness | None = None, *, persistent: bool = False
    ) -> None:
        self.version = version
        self.harness = harness or Harness()
        self.harness.alone = True
        connect = self.harness.persistent if persistent else self.harness.connect
        self.subscriber = connect("subscriber", version, maximum_packet_size=1_000)
        self.subscriber.subscribe(TOPIC, 1)
        self.publisher = self.harness.connect("publisher", version)
        for number in (1, 2):
            self.publisher.send(Publish(TOPIC, b"first", 1, packet_id=number))
            self.subscriber.send(PubAck(number))
        self.subscriber.take()
        self.publisher.take()
        self.wires = [Wire(), Wire()]
        for client, wire in zip((self.subscriber, self.publisher), self.wires, strict=True):
            client.client.connection.output.transport = wire

    @property
    def way(self) -> LoneNumberedWay:
        way = self.publisher.client.numbered_way
        assert way is not None
        return way

    def encoded(self, payload: bytes = b"21.5", packet_id: int = 7) -> bytes:
        return encode(Publish(TOPIC, payload, 1, packet_id=packet_id), self.version)

    def goes(self, data: bytes | None = None) -> bool:
        return self.way.pass_on(data or self.encoded(), True, self.harness.now, self.harness.wall)

    def written(self) -> list[list[bytes]]:
        return [wire.written for wire in self.wires]

"""Publishers and a subscriber that cost little themselves: their packets are encoded beforehand.

They speak MQTT 3.1.1, in which a PUBACK has 4 bytes and says that a message is taken.
"""

import asyncio
from collections.abc import Callable
from functools import partial

from gateway.mqtt.codec.packet_codec import encode
from gateway.mqtt.packets import MQTT_3_1_1, Connect, Publish, Subscribe, SubscriptionRequest

HOST = "127.0.0.1"
PAYLOAD = bytes(range(200))
TOPICS = "bench/#"
ACKNOWLEDGEMENT = 4
"""Bytes of a CONNACK and of a PUBACK."""


def topic_of(number: int) -> str:
    """Return the topic of a publisher; all have one length."""
    return f"bench/{number:03}"


class Publisher(asyncio.Protocol):
    """Publishes at QoS 1, never more than `window` messages without a PUBACK."""

    def __init__(self, number: int, window: int) -> None:
        self.acknowledged = 0
        self.connected = asyncio.Event()
        self._connect = encode(Connect(f"publisher-{number}", MQTT_3_1_1), MQTT_3_1_1)
        self._packets = [
            encode(Publish(topic_of(number), PAYLOAD, 1, packet_id=packet_id), MQTT_3_1_1)
            for packet_id in range(1, window + 1)
        ]
        self._window = window
        self._sent = 0
        self._rest = 0
        self._more = False
        self._transport: asyncio.Transport | None = None

    @property
    def free(self) -> int:
        """How many messages the window has room for."""
        return self._window - (self._sent - self.acknowledged)

    def publish(self, count: int) -> None:
        """Send so many messages; the window must have room for them."""
        assert self._transport is not None
        first = self._sent % self._window
        packets = (self._packets[first:] + self._packets[:first])[:count]
        self._sent += count
        self._transport.write(b"".join(packets))

    def run(self) -> None:
        """Keep the window full until `pause`."""
        self._more = True
        if self.free:
            self.publish(self.free)

    def pause(self) -> None:
        """Send nothing new."""
        self._more = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send CONNECT."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(self._connect)

    def data_received(self, data: bytes) -> None:
        """Count what is acknowledged, and send as much."""
        whole, self._rest = divmod(self._rest + len(data), ACKNOWLEDGEMENT)
        if not self.connected.is_set():
            self.connected.set()
            whole -= 1
        self.acknowledged += whole
        if self._more and whole:
            self.publish(whole)


class Subscriber(asyncio.Protocol):
    """Takes every message at QoS 1, with a session that outlives its connection."""

    def __init__(self) -> None:
        self.received = 0
        self.subscribed = asyncio.Event()
        self._buffer = b""
        self._greeting = True
        packet = encode(Publish(topic_of(0), PAYLOAD, 1, packet_id=1), MQTT_3_1_1)
        self._size = len(packet)
        self._packet_id = packet.index(topic_of(0).encode()) + len(topic_of(0))
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send CONNECT and SUBSCRIBE."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        connect = Connect("subscriber", MQTT_3_1_1, clean_start=False)
        subscribe = Subscribe(1, [SubscriptionRequest(TOPICS, 1)])
        transport.write(encode(connect, MQTT_3_1_1) + encode(subscribe, MQTT_3_1_1))

    def data_received(self, data: bytes) -> None:
        """Acknowledge every whole PUBLISH; all have one length."""
        data = self._buffer + data
        if self._greeting:
            data = self._greeted(data)
        size, place = self._size, self._packet_id
        whole = len(data) // size
        answers = [
            b"\x40\x02" + data[start + place : start + place + 2]
            for start in range(0, whole * size, size)
        ]
        self.received += whole
        self._buffer = data[whole * size :]
        assert self.transport is not None
        self.transport.write(b"".join(answers))

    def _greeted(self, data: bytes) -> bytes:
        """Return what stands behind CONNACK, and leave out SUBACK wherever it comes."""
        place = data.find(b"\x90\x03\x00\x01")
        if place < 0:
            return data if len(data) > self._size else b""
        self._greeting = False
        self.subscribed.set()
        return data[ACKNOWLEDGEMENT:place] + data[place + 5 :]


async def connect_publishers(port: int, count: int, window: int) -> list[Publisher]:
    """Return so many publishers that are connected."""
    loop = asyncio.get_running_loop()
    publishers = []
    for number in range(count):
        _, publisher = await loop.create_connection(partial(Publisher, number, window), HOST, port)
        await publisher.connected.wait()
        publishers.append(publisher)
    return publishers


async def connect_subscriber(port: int) -> Subscriber:
    """Return the subscriber with its session, whose backlog comes at once."""
    _, subscriber = await asyncio.get_running_loop().create_connection(Subscriber, HOST, port)
    await subscriber.subscribed.wait()
    return subscriber


async def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Return once the condition holds."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - nobody would set an event
            await asyncio.sleep(0.002)

"""A client that publishes numbers and knows which of them the gateway has acknowledged."""

import asyncio
import time
from random import Random

from crashtest.client import Client
from crashtest.numbers import Promise, Sent, payload_of
from crashtest.participant import Participant, until
from gateway.mqtt.packets import MQTT_5, Packet, PubAck, PubComp, Publish, PubRec, PubRel
from gateway.mqtt.reason_codes import FAILURE

WRITTEN = "crash"
"""First level of the topics that go to the outbox and to everyone, so that all is written."""

LIVE = "live"
"""First level of those that only clients get that are mostly there: little need be written."""

MAXIMUM_PACKET_ID = 65_535

LONGEST_PAUSE = 0.005
"""Seconds between two bursts, at most."""

LONGEST_BURST = 30
PADDING = (0, 0, 100, 1_000, 6_000)
"""Letters of padding, one of which a message gets: rows smaller and larger than a page."""


class Publisher(Participant):
    """Publishes on `<root>/<name>/<place>` for `topics` places in turn, with `window` on the way.

    `sent` has every message, `sent[n - 1]` with number n. What has no acknowledgement is sent
    again on the next connection [MQTT-4.4.0-1]. `latencies` are the seconds from a PUBLISH to its
    acknowledgement.
    """

    def __init__(
        self,
        name: str,
        findings: list[str],
        random: Random,
        *,
        root: str = WRITTEN,
        qos: int = 1,
        version: int = MQTT_5,
        persistent: bool = True,
        window: int = 30,
        topics: int = 1,
        retain: bool = False,
    ) -> None:
        super().__init__(name, findings, version=version, persistent=persistent)
        self.root = root
        self.qos = qos
        self.retain = retain
        self.window = window
        self.topics = topics
        self.round = 0
        self.sent: list[Sent] = []
        self.latencies: list[float] = []
        self.pending: dict[int, Sent] = {}  # by packet identifier, in the order of sending
        self._released: set[int] = set()  # those that had their PUBREC
        self._packet_id = 0
        self._random = random
        self._changed = asyncio.Event()

    @property
    def unanswered(self) -> list[Sent]:
        """The messages that nothing is promised for yet, the oldest first."""
        return [sent for sent in self.pending.values() if sent.promise is Promise.NONE]

    async def publish(self, count: int) -> None:
        """Publish so many, as fast as the window allows; return early if the connection ends."""
        for _ in range(count):
            while self.client is not None and len(self.pending) >= self.window:
                self._changed.clear()
                await self._changed.wait()
            if self.client is None:
                return
            self._publish_next(self.client)
            await self.client.drain()

    async def idle(self) -> None:
        """Wait until everything that was sent is answered."""
        await until(lambda: not self.pending, f"all that {self.name} has sent is acknowledged")

    async def publish_freely(self) -> None:
        """Publish bursts with pauses between them until the connection ends."""
        while self.client is not None:
            try:
                await self.publish(self._random.randint(1, LONGEST_BURST))
            except OSError:
                return  # the gateway died while it was written to
            await asyncio.sleep(self._random.uniform(0, LONGEST_PAUSE))

    def resume(self, client: Client, *, present: bool) -> None:
        """Send again what is not acknowledged, in the order in which it was sent."""
        for packet_id, sent in self.pending.items():
            if packet_id in self._released:
                client.send(PubRel(packet_id))
            else:
                sent.sent_at = time.monotonic()
                client.send(self._packet(packet_id, sent, dup=present))

    def forget(self) -> None:
        """Release nothing that the gateway does not know; what it has not answered goes again."""
        for packet_id in self._released:
            del self.pending[packet_id]
        self._released.clear()

    def on_packet(self, client: Client, packet: Packet) -> None:
        """Note an acknowledgement, and answer a PUBREC [MQTT-4.3.3-4]."""
        if isinstance(packet, PubRec) and packet.packet_id in self.pending:
            self._answered(packet.packet_id, refused=packet.reason_code >= FAILURE)
            if packet.reason_code >= FAILURE:
                del self.pending[packet.packet_id]
            else:
                self._released.add(packet.packet_id)
                client.send(PubRel(packet.packet_id))
        elif isinstance(packet, PubAck) and packet.packet_id in self.pending:
            self._answered(packet.packet_id, refused=packet.reason_code >= FAILURE)
            del self.pending[packet.packet_id]
        elif isinstance(packet, PubComp):
            self._released.discard(packet.packet_id)
            self.pending.pop(packet.packet_id, None)
        self._changed.set()

    async def _read(self, client: Client) -> None:
        await super()._read(client)
        self._changed.set()  # whoever waits for room sees that the connection is gone

    def _answered(self, packet_id: int, *, refused: bool) -> None:
        sent = self.pending[packet_id]
        if sent.promise is not Promise.ACKNOWLEDGED:
            sent.promise = Promise.REFUSED if refused else Promise.ACKNOWLEDGED
            self.latencies.append(time.monotonic() - sent.sent_at)

    def _publish_next(self, client: Client) -> None:
        number = len(self.sent) + 1
        topic = f"{self.root}/{self.name}/{number % self.topics}"
        removes = self.retain and self._random.random() < 1 / LONGEST_BURST
        sent = Sent(self.name, number, topic, self.qos, self.round, removes)
        self.sent.append(sent)
        while True:
            self._packet_id = self._packet_id % MAXIMUM_PACKET_ID + 1
            if self._packet_id not in self.pending:
                break
        self.pending[self._packet_id] = sent
        client.send(self._packet(self._packet_id, sent, dup=False))

    def _packet(self, packet_id: int, sent: Sent, *, dup: bool) -> Publish:
        padding = PADDING[sent.number * 7 % len(PADDING)]
        payload = b"" if sent.removes else payload_of(sent.sender, sent.number, padding)
        return Publish(sent.topic, payload, sent.qos, self.retain, dup, packet_id)

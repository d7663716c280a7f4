"""Clients that keep their own side of QoS 1 and 2 as MQTT asks, over any number of connections."""

from gateway.mqtt.packets import (
    ConnAck,
    Connect,
    Packet,
    PubAck,
    PubComp,
    Publish,
    PubRec,
    PubRel,
    Subscribe,
    SubscriptionRequest,
)
from gateway.mqtt.properties import Properties
from tests.support.broker.broker_harness import Harness
from tests.support.broker.memory_client import MemoryClient

STAYS = Properties(session_expiry_interval=0xFFFFFFFF)


class ExactClient:
    """One client with a session that stays; packets are handled when `react` is called."""

    def __init__(self, client_id: str) -> None:
        self.client_id = client_id
        self.network: MemoryClient | None = None
        self.accepted = False
        self.known = False  # the broker has once confirmed the session

    def connect(self, harness: Harness) -> None:
        """Open a connection; what came on the last one and was not handled is lost."""
        self.network, self.accepted = harness.open(), False
        self.network.send(Connect(self.client_id, clean_start=False, properties=STAYS))

    def lose_connection(self) -> None:
        self.network, self.accepted = None, False

    def send(self, *packets: Packet) -> None:
        assert self.network is not None
        self.network.send(*packets)

    def react(self) -> bool:
        """Handle all that came; return whether something had."""
        packets = [] if self.network is None else self.network.take()
        for packet in packets:
            if isinstance(packet, ConnAck):
                assert packet.session_present or not self.known, "the session is lost"
                self.accepted = self.known = True
                self.begin()
            else:
                self.handle(packet)
        return bool(packets)

    def begin(self) -> None:
        """Go on after CONNACK."""
        raise NotImplementedError

    def handle(self, packet: Packet) -> None:
        """Handle a packet behind CONNACK."""
        raise NotImplementedError


class ExactPublisher(ExactClient):
    """Sends again what was not acknowledged, with its packet identifier, in order."""

    def __init__(self, client_id: str) -> None:
        super().__init__(client_id)
        self.unacknowledged: dict[int, Publish | PubRel] = {}
        self._last = 0

    def publish(self, topic: str, payloads: list[bytes], qos: int) -> None:
        """Publish at most three messages, all in one read."""
        packets = []
        for payload in payloads:
            self._last = self._next(1)
            packets.append(Publish(topic, payload, qos, packet_id=self._last))
            self.unacknowledged[self._last] = packets[-1]
        self.send(*packets)

    def _next(self, ahead: int) -> int:
        return (self._last + ahead - 1) % 20 + 1  # few, so that they are used again soon

    @property
    def may_publish(self) -> bool:
        free = all(self._next(ahead) not in self.unacknowledged for ahead in (1, 2, 3))
        return self.accepted and free

    def unanswered(self, qos: int) -> list[int]:
        """Return what has neither PUBACK nor PUBREC, in the order in which it was sent."""
        packets = self.unacknowledged.values()
        return [each.packet_id for each in packets if isinstance(each, Publish) and each.qos == qos]

    def begin(self) -> None:
        for packet in self.unacknowledged.values():
            if isinstance(packet, Publish):
                packet.dup = True
            self.send(packet)

    def handle(self, packet: Packet) -> None:
        assert isinstance(packet, PubAck | PubRec | PubComp), packet
        # a PUBREL that is sent again may find that the broker has finished
        assert packet.reason_code < 0x80 or isinstance(packet, PubComp), packet
        if not isinstance(packet, PubComp):  # [MQTT-4.6.0-2], [MQTT-4.6.0-3]
            qos = 1 if isinstance(packet, PubAck) else 2
            assert packet.packet_id == self.unanswered(qos)[0]
        if isinstance(packet, PubRec):
            self.unacknowledged[packet.packet_id] = PubRel(packet.packet_id)
            self.send(PubRel(packet.packet_id))
        else:
            del self.unacknowledged[packet.packet_id]


class ExactSubscriber(ExactClient):
    """Takes a QoS 2 message once, whatever the number of its PUBLISH packets."""

    def __init__(self, client_id: str, topic_filter: str) -> None:
        super().__init__(client_id)
        self.received: list[bytes] = []
        self.subscribed = False
        self._request = SubscriptionRequest(topic_filter, 2)
        self._held: set[int] = set()

    def begin(self) -> None:
        if not self.subscribed:
            self.send(Subscribe(1, [self._request]))

    def handle(self, packet: Packet) -> None:
        if isinstance(packet, Publish):
            if packet.packet_id not in self._held:
                self.received.append(packet.payload)
            if packet.qos == 1:
                self.send(PubAck(packet.packet_id))
            else:
                self._held.add(packet.packet_id)
                self.send(PubRec(packet.packet_id))
        elif isinstance(packet, PubRel):
            self._held.discard(packet.packet_id)
            self.send(PubComp(packet.packet_id))
        else:  # SUBACK
            self.subscribed = True

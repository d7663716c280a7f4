"""A client joined to a broker in memory, which plays its transport, too."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeVar

from gateway.broker.client import Client
from gateway.broker.connecting.connection_info import Authenticator, ConnectionInfo
from gateway.mqtt.codec.packet_codec import decode, encode
from gateway.mqtt.framing import Framer
from gateway.mqtt.packets import ConnAck, Packet, SubAck, Subscribe, SubscriptionRequest
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.frames import next_frame

if TYPE_CHECKING:
    from tests.support.broker.broker_harness import Harness

NO_LIMIT = 0xFFFFFFFF

P = TypeVar("P", bound=Packet)


class MemoryClient:
    """One network connection to the broker, without a network."""

    def __init__(
        self, harness: "Harness", version: int, authenticator: Authenticator, info: ConnectionInfo
    ) -> None:
        self.harness = harness
        self.version = version
        self.connack = ConnAck()
        self.inbox: list[Packet] = []
        self.raw = b""
        self._closed = False
        self.reads = True  # False: a network peer that takes nothing any more
        self.touched = 0
        self._framer = Framer(NO_LIMIT)
        self.client: Client = harness.broker.open(
            authenticator, harness.peer, self._touch, harness.instant, info
        )

    def send(self, *packets: Packet) -> None:
        self.send_bytes(b"".join(encode(packet, self.version) for packet in packets))

    def send_bytes(self, data: bytes) -> None:
        assert not self._closed, "the broker has closed this connection"
        while self.harness.broker.receive(self.client, data, self.harness.instant):
            data = b""
            self.harness.settle()
        self.harness.settle()

    def take(self) -> list[Packet]:
        """Return the packets that came since the last time."""
        packets, self.inbox = self.inbox, []
        return packets

    def take_only(self, kind: type[P]) -> P:
        """Return the one packet that came since the last time, which is of this kind."""
        (packet,) = self.take()
        assert isinstance(packet, kind), packet
        return packet

    def subscribe(self, topic_filter: str, qos: int = 0, **options: object) -> ReasonCode:
        """Subscribe and return the answer's only reason code; what follows it stays unread."""
        request = SubscriptionRequest(topic_filter, qos, **options)  # type: ignore[arg-type]  # by name
        return self.subscribe_all([request]).reason_codes[0]

    def subscribe_all(
        self,
        requests: Iterable[SubscriptionRequest],
        where: str | None = None,
        identifier: int | None = None,
    ) -> SubAck:
        properties = Properties(
            user_properties=() if where is None else (("$where", where),),
            subscription_identifiers=() if identifier is None else (identifier,),
        )
        before = self.take()
        self.send(Subscribe(77, list(requests), properties))
        suback, *rest = self.take()
        assert isinstance(suback, SubAck), suback
        assert suback.packet_id == 77
        self.inbox = before + rest
        return suback

    def closed(self) -> bool:
        """Return whether the network connection has ended."""
        return self._closed

    def drop(self) -> None:
        """Lose the network connection."""
        assert not self._closed
        self._closed = True
        self.harness.broker.lost(self.client, self.harness.instant)
        self.harness.settle()

    def flush(self) -> bool:
        """Do what a transport does at the end of a turn; return True if something happened."""
        if self._closed or not self.reads:
            return False
        committed = self.harness.disk.committed if self.harness.disk is not None else 0
        connection = self.client.connection
        data = connection.data_to_send(committed, self.harness.now)
        session = self.client.session
        if data is None and session is not None and session.queue.messages:
            session.pump(self.harness.now)
            data = connection.data_to_send(committed, self.harness.now)
        if data is not None:
            self._read(bytes(data))
            if session is not None and session.connection is connection:
                session.pump(self.harness.now)
        elif connection.output.held_until(self.harness.now):
            return False
        elif self.client.closing and not connection.output.size:
            self._closed = True
            self.harness.broker.lost(self.client, self.harness.instant)
        return data is not None or self._closed

    def _read(self, data: bytes) -> None:
        self.raw += data
        self._framer.feed(data)
        while (frame := next_frame(self._framer)) is not None:
            self.inbox.append(decode(*frame, self.version))

    def _touch(self) -> None:
        self.touched += 1

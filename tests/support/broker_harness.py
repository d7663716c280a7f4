"""Clients joined to a broker in memory: no socket, and time passes only when it is told to."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from gateway.broker.access import Anonymous, Authenticator
from gateway.broker.acknowledgement_runs import finish_alone
from gateway.broker.arrival import PLAIN, Arrival
from gateway.broker.broker import Broker
from gateway.broker.client import Client
from gateway.broker.instant import Instant
from gateway.broker.settings import BrokerSettings
from gateway.broker.store import Store
from gateway.counters import Counters
from gateway.mqtt.decode import decode
from gateway.mqtt.encode import encode
from gateway.mqtt.framing import Framer
from gateway.mqtt.packets import (
    MQTT_5,
    ConnAck,
    Connect,
    Packet,
    SubAck,
    Subscribe,
    SubscriptionRequest,
)
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from gateway.routing.where.message import Message
from gateway.session.session import Session
from tests.support.sqlite_disk import SqliteDisk

NO_LIMIT = 0xFFFFFFFF


class Disk:
    """A durability whose batches reach the disk when `commit` is called."""

    def __init__(self) -> None:
        self.pending_rows = 0
        self.batch = 1
        self.committed = 0

    def gather(self, rows: int = 1) -> None:
        self.pending_rows += rows

    def mark(self) -> int:
        return self.batch if self.pending_rows else 0

    def commit(self) -> None:
        self.committed = self.batch
        self.batch += 1
        self.pending_rows = 0


class Inline:
    """A part of the gateway that takes messages, or refuses them with a code."""

    asks_filters = True

    def __init__(self, client_id: str = "inline", disk: "Disk | SqliteDisk | None" = None) -> None:
        self.client_id = client_id
        self.answer = ReasonCode.SUCCESS
        self.taken: list[Message] = []
        self.topic_filters: list[list[str]] = []
        self._disk = disk

    def receive(self, message: Message, topic_filters: list[str]) -> ReasonCode:
        if self.answer is ReasonCode.SUCCESS:
            self.taken.append(message)
            self.topic_filters.append(topic_filters)
            if self._disk is not None:
                self._disk.gather()
        return self.answer


class Harness:
    """A broker with its clients; `now` is monotonic seconds, `wall` milliseconds since 1970."""

    def __init__(
        self,
        settings: BrokerSettings | None = None,
        disk: "Disk | SqliteDisk | None" = None,
        store: Store | None = None,
    ) -> None:
        self.now = 1_000.0
        self.wall = 1_763_740_000_000
        self.counters = Counters()
        self.disk = disk
        self.clients: list[MemoryClient] = []
        self.ways = True  # whether they are asked first
        self.alone = False  # whether what a client sends is all that a turn brings
        self._assigned = 0
        self.broker = Broker(
            settings or BrokerSettings(),
            self.counters,
            durability=disk,
            store=store,
            new_client_id=self._new_client_id,
        )

    def _new_client_id(self) -> str:
        self._assigned += 1
        return f"assigned-{self._assigned}"

    @property
    def instant(self) -> Instant:
        return Instant(self.now, self.wall)

    def pass_time(self, seconds: float) -> float | None:
        """Let time go by; return when the broker wants to be woken next."""
        self.now += seconds
        self.wall += int(seconds * 1000)
        due = self.broker.tick(self.instant)
        self.settle()
        return due

    def open(
        self,
        version: int = MQTT_5,
        authenticator: Authenticator | None = None,
        arrival: Arrival = PLAIN,
    ) -> "MemoryClient":
        """Return a client whose network connection is open and which has said nothing yet."""
        client = MemoryClient(self, version, authenticator or Anonymous(), arrival)
        self.clients.append(client)
        return client

    def connect(
        self,
        client_id: str = "c",
        version: int = MQTT_5,
        *,
        session_expiry: int = 0,
        receive_maximum: int | None = None,
        maximum_packet_size: int | None = None,
        request_problem_information: int | None = None,
        authenticator: Authenticator | None = None,
        arrival: Arrival = PLAIN,
        **fields: object,
    ) -> "MemoryClient":
        """Return a client whose CONNECT was accepted; `connack` holds the answer."""
        properties = Properties(
            session_expiry_interval=session_expiry or None,
            receive_maximum=receive_maximum,
            maximum_packet_size=maximum_packet_size,
            request_problem_information=request_problem_information,
        )
        client = self.open(version, authenticator, arrival)
        connect = Connect(client_id, version, properties=properties)
        client.send(replace(connect, **fields))  # type: ignore[arg-type]  # by name
        connack, *rest = client.take()
        assert isinstance(connack, ConnAck), connack
        assert connack.reason_code == ReasonCode.SUCCESS, connack
        client.connack = connack
        client.inbox[:0] = rest
        return client

    def persistent(
        self,
        client_id: str = "c",
        version: int = MQTT_5,
        *,
        clean_start: bool = False,
        receive_maximum: int | None = None,
        maximum_packet_size: int | None = None,
        **fields: object,
    ) -> "MemoryClient":
        """Return a connected client whose session outlives its connection."""
        return self.connect(
            client_id,
            version,
            session_expiry=3600 if version == MQTT_5 else 0,
            receive_maximum=receive_maximum,
            maximum_packet_size=maximum_packet_size,
            authenticator=None,
            arrival=PLAIN,
            request_problem_information=None,
            clean_start=clean_start,
            **fields,
        )

    def session(self, client_id: str = "c") -> Session:
        return self.broker.sessions[client_id]

    def publish(
        self, topic: str, payload: bytes = b"x", qos: int = 0, **fields: object
    ) -> ReasonCode:
        """Publish as a part of the gateway does."""
        message = Message(topic, payload, qos, arrived=self.now, received_at=self.wall, **fields)  # type: ignore[arg-type]  # by name
        code = self.broker.publish(message, self.instant)
        self.settle()
        return code

    def commit(self) -> None:
        """Bring what was gathered to disk, and let go what waited for it."""
        assert self.disk is not None
        self.disk.commit()
        self.settle()

    def settle(self) -> None:
        """End the turn: let every client have what may leave, and closed connections go."""
        while any([client.flush() for client in self.clients]):  # noqa: C419 - each of them
            pass
        self.clients = [client for client in self.clients if not client.closed()]


@dataclass
class Wire:
    """Notes what is written to a client before the turn ends."""

    written: list[bytes] = field(default_factory=list)

    def write(self, data: bytes | bytearray, /) -> None:
        self.written.append(bytes(data))


class MemoryClient:
    """One network connection to the broker, without a network."""

    def __init__(
        self, harness: Harness, version: int, authenticator: Authenticator, arrival: Arrival
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
            authenticator, "192.0.2.7:40000", self._touch, harness.instant, arrival
        )

    def send(self, *packets: Packet) -> None:
        self.send_bytes(b"".join(encode(packet, self.version) for packet in packets))

    def send_bytes(self, data: bytes) -> None:
        assert not self._closed, "the broker has closed this connection"
        way = self.client.way
        if way is not None and way.pass_on(data, at_once=False):
            self.client.last_received = self.harness.instant.monotonic
            self.harness.settle()
            return
        if not self._goes_alone(data):
            while self.harness.broker.receive(
                self.client, data, self.harness.instant, self.harness.alone
            ):
                data = b""
                self.harness.settle()
        self.harness.settle()

    def _goes_alone(self, data: bytes) -> bool:
        """Do what a transport does with what is all that was read; return False if it is not."""
        harness, way = self.harness, self.client.numbered_way
        if not harness.ways or not (
            (way is not None and way.pass_on(data, harness.alone, harness.now, harness.wall))
            or finish_alone(self.client, data, harness.broker.traffic)
        ):
            return False
        self.client.last_received = harness.now
        return True

    def take(self) -> list[Packet]:
        """Return the packets that came since the last time."""
        packets, self.inbox = self.inbox, []
        return packets

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
        data = connection.data_to_send(committed)
        if data is not None:
            self._read(bytes(data))
            session = self.client.session
            if session is not None and session.connection is connection:
                session.pump(self.harness.now)
        elif self.client.closing and not connection.output.size:
            self._closed = True
            self.harness.broker.lost(self.client, self.harness.instant)
        return data is not None or self._closed

    def _read(self, data: bytes) -> None:
        self.raw += data
        self._framer.feed(data)
        while (frame := self._framer.next_frame()) is not None:
            self.inbox.append(decode(*frame, self.version))

    def _touch(self) -> None:
        self.touched += 1

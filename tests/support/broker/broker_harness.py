"""A broker and its clients in memory: no socket, and time passes only when it is told to."""

from dataclasses import replace
from random import Random

from gateway.broker.broker import Broker
from gateway.broker.connecting.connection_info import (
    PLAIN,
    Anonymous,
    Authenticator,
    ConnectionInfo,
)
from gateway.broker.instant import Instant
from gateway.broker.store import Store
from gateway.counters import Counters
from gateway.mqtt.message import Message
from gateway.mqtt.packets import MQTT_5, ConnAck, Connect
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from gateway.session.session import Session
from gateway.settings.broker import BrokerSettings
from gateway.settings.when_full import WhenFull
from tests.support.broker.memory_client import MemoryClient
from tests.support.disk.held_disk import Disk
from tests.support.disk.sqlite_disk import SqliteDisk

REFUSING = BrokerSettings(queue_when_full=WhenFull.REJECT)
"""Of a broker that refuses publishers while a session that stays has no room."""


UNSHARED = BrokerSettings(maximum_share=100)
"""Of a broker all of which one client may have."""


class Harness:
    """A broker with its clients; `now` is monotonic seconds, `wall` milliseconds since 1970."""

    peer = "192.0.2.7:40000"
    """Where the next client connects from."""

    def __init__(
        self,
        settings: BrokerSettings | None = None,
        disk: Disk | SqliteDisk | None = None,
        store: Store | None = None,
    ) -> None:
        self.now = 1_000.0
        self.wall = 1_763_740_000_000
        self.counters = Counters()
        self.disk = disk
        self.clients: list[MemoryClient] = []
        self._assigned = 0
        self.broker = Broker(
            settings or BrokerSettings(),
            self.counters,
            durability=disk,
            store=store,
            new_client_id=self._new_client_id,
            randrange=Random(7).randrange,
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
        if isinstance(self.disk, SqliteDisk) and self.disk.wake_up.at <= self.now:
            self.disk.wake_up.ring()
        self.settle()
        return due

    def open(
        self,
        version: int = MQTT_5,
        authenticator: Authenticator | None = None,
        info: ConnectionInfo = PLAIN,
    ) -> MemoryClient:
        """Return a client whose network connection is open and which has said nothing yet."""
        client = MemoryClient(self, version, authenticator or Anonymous(), info)
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
        info: ConnectionInfo = PLAIN,
        **fields: object,
    ) -> MemoryClient:
        """Return a client whose CONNECT was accepted; `connack` holds the answer."""
        properties = Properties(
            session_expiry_interval=session_expiry or None,
            receive_maximum=receive_maximum,
            maximum_packet_size=maximum_packet_size,
            request_problem_information=request_problem_information,
        )
        client = self.open(version, authenticator, info)
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
    ) -> MemoryClient:
        """Return a connected client whose session outlives its connection."""
        return self.connect(
            client_id,
            version,
            session_expiry=3600 if version == MQTT_5 else 0,
            receive_maximum=receive_maximum,
            maximum_packet_size=maximum_packet_size,
            authenticator=None,
            info=PLAIN,
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

"""A broker behind a real listener, in the event loop of the test."""

import ssl
from collections.abc import Callable
from dataclasses import dataclass
from random import randrange

from gateway.access.access import EVERYTHING
from gateway.broker.broker import Broker
from gateway.broker.client import Client
from gateway.broker.connecting.connection_info import Anonymous, Authenticator
from gateway.clock import Clock
from gateway.counters import Counters
from gateway.mqtt.message import Message
from gateway.mqtt.output import Pending
from gateway.mqtt.packets import Publish
from gateway.mqtt.reason_codes import ReasonCode
from gateway.server.listening.listener import Listener
from gateway.server.turn import Turn
from gateway.settings.broker import BrokerSettings
from gateway.settings.listener import ListenerSettings
from gateway.storage.engine.wake_up import CommitDue, WakeUp
from gateway.storage.engine.writer import Writer
from tests.support.raw_client import Clients, RawClient

HOST = "127.0.0.1"

SMALL = 4_096
"""Bytes that the buffers of a narrow server hold, and the kernel's behind them."""


class HeldWriter:
    """Has the shape of the storage layer's writer; a batch is on disk when `commit` is called."""

    def __init__(self, *, durable: bool = True) -> None:
        self.batch = 1
        self.committed = 0
        self.on_committed: list[Callable[[int], None]] = []
        self.before_batch: list[Callable[[], None]] = []
        self.wanted: list[float] = []
        self.durable = durable
        self.rows: list[tuple[str, tuple[object, ...]]] = []
        self.pending = Pending()
        self.pending_rows = 0
        self.turns = 0
        self.full = False
        self.due = CommitDue()
        self.due.wanted = True  # each turn is counted
        self.wake_up = WakeUp()

    def add(self, statement: str, row: tuple[object, ...], within: float = 0.0) -> int:
        self.rows.append((statement, row))
        self.pending.changes += 1
        self.pending_rows += 1
        self.schedule_commit(within)
        return self.batch

    def schedule_commit(self, within: float) -> None:
        self.wanted.append(within)

    def commit_number(self) -> int:
        return self.batch if self.durable and self.wanted else 0

    def hand_over(self) -> None:
        self.turns += 1

    def commit(self) -> None:
        for gather in self.before_batch:
            gather()
        self.committed = self.batch
        self.batch += 1
        self.pending_rows = 0
        self.wanted.clear()
        for callback in self.on_committed:
            callback(self.committed)


class Rows:
    """An inline client that makes a row of each message."""

    client_id = "rows"
    inline = True
    refusal = "it refuses"
    access = granted = EVERYTHING
    statement = "INSERT INTO meta (name, value) VALUES (?, ?)"

    def __init__(self, writer: "Writer | HeldWriter") -> None:
        self._writer = writer
        self.taken = 0

    def receive(self, message: Message, topic_filters: list[str]) -> ReasonCode:
        self.taken += 1
        self._writer.add(self.statement, (f"row {self.taken}", self.taken))
        return ReasonCode.SUCCESS


@dataclass(slots=True)
class Server:
    """A broker that listens on `port`; messages below `up/` make rows."""

    broker: Broker
    turn: Turn
    listener: Listener
    counters: Counters
    rows: Rows
    clients: Clients

    @property
    def port(self) -> int:
        return self.listener.port

    def look_at_the_clock(self) -> None:
        """Do what is due by the clock, which a test may have moved."""
        self.turn.end()
        self.broker.tick(self.turn.instant)

    async def close(self) -> None:
        await self.listener.close()
        await self.clients.close()
        self.turn.stop()


async def serve(
    writer: Writer | HeldWriter,
    settings: BrokerSettings | None = None,
    authenticator: Authenticator | None = None,
    listener_settings: ListenerSettings | None = None,
    tls: ssl.SSLContext | None = None,
    clock: Clock | None = None,
) -> Server:
    counters = Counters()
    broker = Broker(
        settings or BrokerSettings(),
        counters,
        durability=writer,
        new_client_id=lambda: "assigned",
        randrange=randrange,
    )
    turn = Turn(broker, writer, clock or Clock())  # type: ignore[arg-type]  # by shape
    rows = Rows(writer)
    broker.subscribe_inline(rows, ["up/#"])
    listener = Listener(
        listener_settings or ListenerSettings(HOST, 0), authenticator or Anonymous(), turn, tls=tls
    )
    await listener.bind()
    await listener.serve()
    return Server(broker, turn, listener, counters, rows, Clients(listener.port))


async def congest(client: Client, publisher: RawClient) -> None:
    """Publish to the topic `a` until a client of the broker that reads nothing is congested."""
    for number in range(5_000):
        if client.connection.congested:
            return
        await publisher.send(Publish("a", b"x" * (1_000 + number)))  # no two alike: no runs
        await publisher.waiting()
    raise AssertionError("5,000 messages found room")

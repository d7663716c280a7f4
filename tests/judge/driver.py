"""The real broker, driven by its bytes alone: what a transport and a disk do, without either.

It goes through `Broker.open`, `receive`, `lost` and `tick`, and a connection's `data_to_send`; what
is behind them may be written anew without a change here.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from random import randrange

from gateway.access.access import AccessPolicy
from gateway.access.acl_file import parse
from gateway.access.listeners import ListenerRights, Listeners
from gateway.broker import access
from gateway.broker.broker import Broker
from gateway.broker.connecting.connection_info import Anonymous, ConnectionInfo
from gateway.broker.instant import Instant
from gateway.broker.restore import restore
from gateway.counters import Counters
from gateway.pieces import complete
from gateway.session.session import Session
from gateway.settings.broker import BrokerSettings
from tests.conformance.support import wire
from tests.conformance.support.answers import read_publish, whole_packet
from tests.judge.inline_uplink import InlineUplink
from tests.judge.rights import MAIN, SECOND
from tests.support.disk.sqlite_disk import SqliteDisk

MOMENT = 0.001
"""Seconds by which time goes on where the broker wants a turn more."""

ALL = 1 << 62
"""A batch number that is never reached: nothing is held back."""


@dataclass(slots=True)
class Tally:
    """What went over all network connections since the broker's start."""

    packets_received: int = 0
    publishes_received: int = 0
    payload_received: int = 0
    bytes_received: int = 0
    packets_sent: int = 0
    publishes_sent: int = 0


def cut(part: bytearray, data: bytes | bytearray) -> Iterator[bytes]:
    """Give the packets that are whole with this data; what is left stays in the part."""
    part += data
    while size := whole_packet(part):
        packet = bytes(part[:size])
        del part[:size]
        yield packet


class Link:
    """One network connection; `inbox` holds the packets that came, each whole, as bytes."""

    def __init__(self, driver: "Driver", version: int, listener: str = MAIN) -> None:
        self.version = version
        self._driver = driver
        self._going = bytearray()  # a part of a packet
        self._coming = bytearray()
        self.inbox: list[bytes] = []
        self.closed = False
        self.reads = True
        info = ConnectionInfo(access=driver.policies[listener], listener=listener)
        self.client = driver.broker.open(
            Anonymous(), "192.0.2.7:40000", self._touch, driver.instant, info
        )

    def _touch(self) -> None:
        """Take note of nothing: every link is asked at the end of each turn."""

    def say(self, data: bytes) -> None:
        """Hand over the bytes of one read, and end the turn."""
        self.hand_over(data)
        self._driver.settle()

    def hand_over(self, data: bytes) -> None:
        """Hand over the bytes of one read; turns end only where the broker wants that."""
        assert not self.closed, "the broker has closed this connection"
        driver = self._driver
        self._count(data)
        while driver.broker.receive(self.client, data, driver.instant):
            data = b""
            driver.settle()

    def flush(self, committed: int) -> bool:
        """Do what a transport does at the end of a turn; return True if something happened."""
        if self.closed or not self.reads:
            return False
        client, connection = self.client, self.client.connection
        data = connection.data_to_send(committed)
        if data is not None:
            self._hear(data)
            if client.session is not None and client.session.connection is connection:
                client.session.pump(self._driver.now)
        elif client.closing and not connection.output.size:
            self._lose()
            return True
        return data is not None

    def drop(self) -> None:
        """Lose the network connection; what was sent and not read yet is lost with it."""
        if self.closed:
            return
        inbox = len(self.inbox)
        while (data := self.client.connection.data_to_send(ALL)) is not None:
            self._hear(data)
        del self.inbox[inbox:]
        self._lose()
        self._driver.settle()

    def _lose(self) -> None:
        self.closed = True
        self._driver.broker.lost(self.client, self._driver.instant)

    def _hear(self, data: bytes | bytearray) -> None:
        tally = self._driver.tally
        for packet in cut(self._coming, data):
            self.inbox.append(packet)
            tally.packets_sent += 1
            tally.publishes_sent += packet[0] & 0xF0 == wire.PUBLISH

    def _count(self, data: bytes) -> None:
        tally = self._driver.tally
        tally.bytes_received += len(data)
        for packet in cut(self._going, data):
            tally.packets_received += 1
            if packet[0] & 0xF0 == wire.PUBLISH:
                tally.publishes_received += 1
                tally.payload_received += len(read_publish(packet, self.version).payload)


class Driver:
    """A broker with its links, in memory or on SQLite; each turn is committed while it `commits`.

    `now` is monotonic seconds, `wall` milliseconds since 1970; `started` is what `now` was at the
    last start.
    """

    def __init__(
        self,
        settings: BrokerSettings | None = None,
        *,
        durable: bool = False,
        uplink: InlineUplink | None = None,
    ) -> None:
        self.uplink = uplink
        self.settings = settings or BrokerSettings()
        self.disk = SqliteDisk() if durable else None
        self.policies = {MAIN: AccessPolicy(), SECOND: AccessPolicy()}
        self.commits = True
        self.now = 1_000.0
        self.wall = 1_763_740_000_000
        self._start()

    def _start(self) -> None:
        self.started = self.now
        self.links: list[Link] = []
        self.tally = Tally()
        self.counters = Counters()
        store = kept = None
        if self.disk is not None:
            store, kept = self.disk.restore(self.now, self.wall)
            self.disk.reading.counters = self.counters
        self.broker = Broker(
            self.settings,
            self.counters,
            durability=self.disk,
            store=store,
            new_client_id=lambda: "assigned",
            randrange=randrange,
        )
        if self.uplink is not None:
            self.broker.subscribe_inline(self.uplink, ["#"])
        self.broker.listeners = Listeners(
            {name: ListenerRights(policy) for name, policy in self.policies.items()}
        )
        self.broker.router.restricts = any(each.restricted for each in self.policies.values())
        if kept is not None:
            restore(self.broker, kept, self.instant)
        self.settle()

    @property
    def instant(self) -> Instant:
        return Instant(self.now, self.wall)

    def reload(self, rules: dict[str, str | None]) -> None:
        """Let the listeners' rules be these from now on."""
        for listener, text in rules.items():
            self.policies[listener].replace(None if text is None else parse(text))
        complete(access.apply(self.broker, self.policies.values(), self.now))
        self.settle()

    def open(self, version: int, listener: str = MAIN) -> Link:
        link = Link(self, version, listener)
        self.links.append(link)
        return link

    def session(self, client_id: str) -> Session | None:
        return self.broker.sessions.get(client_id)

    def crash(self) -> None:
        """Lose all connections and what is not on disk; start again a second later."""
        assert self.disk is not None
        self.pass_over(1.5)
        self._start()

    def pass_over(self, seconds: float) -> None:
        self.now += seconds
        self.wall = 1_763_740_000_000 + round(1000 * (self.now - 1_000.0))

    def pass_time(self, seconds: float) -> None:
        """Let time go by, and let the broker see it."""
        self.pass_over(seconds)
        disk = self.disk
        if disk is not None and disk.wake_up.at <= self.now:
            disk.wake_up.ring()
        self.settle()

    def settle(self) -> None:
        """End turns until all have what may leave, and what is due is done."""
        self._end_turn()
        due = self.broker.tick(self.instant)
        while due is not None and due <= self.now + MOMENT:
            self._end_turn()
            self.pass_over(MOMENT)
            due = self.broker.tick(self.instant)
        self._end_turn()

    def _end_turn(self) -> None:
        self._flush()
        self.broker.traffic.begin_turn()
        disk = self.disk
        if disk is None:
            return
        disk.time = self.now, self.wall
        disk.run_steps()
        self._flush()
        while self.commits and disk.due():
            disk.commit()
            disk.run_steps()
            self._flush()

    def _flush(self) -> None:
        committed = 0 if self.disk is None else self.disk.committed
        while any([link.flush(committed) for link in self.links]):  # noqa: C419 - each of them
            pass
        self.links = [link for link in self.links if not link.closed]

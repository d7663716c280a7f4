"""Connections that say nothing keep nobody out."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from gateway.broker.connecting.connection_info import Authenticator, Credentials, Decide
from gateway.broker.instant import Instant
from gateway.counters import Counters
from gateway.mqtt.packets import ConnAck, Connect, PingReq, PingResp
from gateway.mqtt.reason_codes import ReasonCode
from gateway.server.listening.connection_limits import ConnectionLimits, ProcessConnections, Verdict
from gateway.server.listening.newcomers import Newcomers
from gateway.settings.listener import ListenerSettings
from tests.support.disk.storage import until
from tests.support.places import Place, open_place
from tests.support.processes.certificates import Authority, Pair
from tests.support.raw_client import SECONDS, RawClient

MAXIMUM = 4
MANY = 32
PAUSE = 0.02
"""Seconds after which a connection is renewed: both sides share one loop here."""

Opened = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Undecided:
    """Looks at no password until the test says what comes of it."""

    proves = True

    def __init__(self) -> None:
        self.waiting: dict[str | None, Decide] = {}

    def check(self, credentials: Credentials, instant: Instant, decide: Decide) -> None:
        self.waiting[credentials.username] = decide


class Door:
    """A place for MAXIMUM connections, and sockets that say nothing there."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.counters = place.server.counters
        self._writers: list[asyncio.StreamWriter] = []

    async def idle(self, address: str = "127.0.0.1", data: bytes = b"") -> Opened:
        port = self.place.server.port
        opened = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
        opened[1].write(data)
        self._writers.append(opened[1])
        return opened

    async def close(self) -> None:
        for writer in self._writers:
            writer.close()
        await self.place.close()

    def count(self, name: str) -> int:
        return self.counters.count(f"tidegate/connections/{name}")

    async def full(self) -> None:
        await until(lambda: self.counters.values.get("tidegate/connections/open") == MAXIMUM)

    async def client(self, name: str) -> RawClient:
        client = await self.place.open()
        await client.connect_as(name)
        return client


OpenDoor = Callable[..., Awaitable[Door]]


@pytest.fixture
async def open_door(
    tmp_path: Path, authority: Authority, server_pair: Pair
) -> AsyncIterator[OpenDoor]:
    """Give a function that opens a place of some kind."""
    opened = []

    async def open_one(
        kind: str = "tcp", maximum: int = MAXIMUM, authenticator: Authenticator | None = None
    ) -> Door:
        def narrow(listener: ListenerSettings) -> ListenerSettings:
            return replace(listener, maximum_connections=maximum)

        place = await open_place(
            kind, tmp_path, authority, server_pair, authenticator=authenticator, change=narrow
        )
        opened.append(Door(place))
        return opened[-1]

    yield open_one
    for door in opened:
        await door.close()


async def ended(opened: Opened) -> bool:
    """Return whether the gateway has closed a connection."""
    try:
        async with asyncio.timeout(SECONDS):
            return await opened[0].read() == b""
    except ConnectionError:
        return True


@pytest.mark.parametrize("kind", ["tcp", "tls", "websocket", "wss"])
async def test_who_says_nothing_makes_room(open_door: OpenDoor, kind: str) -> None:
    """Before CONNECT, in a TLS handshake and in one of WebSocket."""
    door = await open_door(kind)
    held = [await door.idle() for _ in range(MAXIMUM)]
    await door.full()
    clients = [await door.client(f"c{number}") for number in range(MAXIMUM)]
    for opened in held:
        assert await ended(opened)
    assert door.count("given_up") == MAXIMUM
    await door.full()
    beyond = await door.place.open()  # all are in: nobody makes room
    await beyond.send(Connect("beyond"))
    assert (await beyond.take(ConnAck)).reason_code is ReasonCode.QUOTA_EXCEEDED
    await clients[0].send(PingReq())
    assert await clients[0].receive() == PingResp()


@pytest.mark.uncovered
async def test_however_often_idle_connections_are_renewed(open_door: OpenDoor) -> None:
    door = await open_door(maximum=MANY)

    async def hold() -> None:
        while True:
            reader, writer = await door.idle(data=b"\x10")
            with contextlib.suppress(ConnectionError):
                await reader.read()
            writer.close()
            await asyncio.sleep(PAUSE)

    holders = [asyncio.create_task(hold()) for _ in range(2 * MANY)]
    await until(lambda: door.count("given_up") > MANY)
    attempts = 0
    for number in range(5):
        # one loop serves both sides here: a client may need several of its rounds to say CONNECT
        client = None
        while client is None:
            attempts += 1
            assert attempts < 50
            with contextlib.suppress(EOFError, ConnectionError):
                client = await door.client(f"c{number}")
        await client.send(PingReq())
        assert await client.receive() == PingResp()
    for holder in holders:
        holder.cancel()
    await asyncio.gather(*holders, return_exceptions=True)


async def test_the_address_that_has_most_makes_room(open_door: OpenDoor) -> None:
    door = await open_door()
    slow = await door.idle("127.0.0.2")
    await until(lambda: door.counters.values.get("tidegate/connections/open") == 1)
    held = [await door.idle("127.0.0.3") for _ in range(MAXIMUM - 1)]
    await door.full()
    await door.client("c")
    assert await ended(held[0])
    slow[1].write(b"\x10\x0d\x00\x04MQTT\x04\x02\x00\x00\x00\x01s")
    assert await slow[0].readexactly(4) == b"\x20\x02\x00\x00"


async def test_of_those_whose_password_is_to_be_checked_the_newest_makes_room(
    open_door: OpenDoor,
) -> None:
    undecided = Undecided()
    place = (await open_door(authenticator=undecided)).place
    waiting = []
    for number in range(MAXIMUM + 1):
        client = await place.open()
        await client.send(Connect(f"c{number}", username=f"u{number}", password=b"p"))
        await until(partial(undecided.waiting.__contains__, f"u{number}"))
        waiting.append(client)
    assert await waiting[MAXIMUM - 1].until_closed() == []
    undecided.waiting["u0"](True, place.server.turn.now())
    assert isinstance(await waiting[0].receive(), ConnAck)


async def test_the_accepted_are_forgotten(open_door: OpenDoor) -> None:
    door = await open_door(maximum=MANY)
    for number in range(10):
        await door.client(f"c{number}")
    assert len(door.place.server.listener.connections._newcomers) <= 2


def test_a_full_process_closes_newcomers_of_the_listener_that_has_most() -> None:
    class Counted(Newcomers):
        def __init__(self, count: int) -> None:
            super().__init__(lambda _: None)
            self.count = count

        def __len__(self) -> int:
            return self.count

        def close_one(self) -> bool:
            if not self.count:
                return False
            self.count -= 1
            limits.release()
            return True

    room, counters = ProcessConnections(3), Counters()
    limits = ConnectionLimits("here", ListenerSettings(), counters, room)
    few, many = Counted(1), Counted(2)
    room.newcomers.extend([few, many])
    assert [limits.judge(0.0) for _ in range(7)] == [Verdict.ADMITTED] * 6 + [Verdict.CLOSED]
    assert counters.count("tidegate/connections/given_up") == 3
    assert counters.count("tidegate/connections/over_capacity") == 1
    assert (few.count, many.count, room.open) == (0, 0, 3)

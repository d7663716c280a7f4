import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from gateway.clock import Clock
from gateway.mqtt import connection as connection_module
from gateway.server.gateway_loop import GatewayLoop
from tests.support.disk.storage import Store, open_store
from tests.support.places import KINDS, Open, Place, open_place
from tests.support.processes.certificates import Authority, Pair
from tests.support.processes.server import SMALL, HeldWriter, Server, serve
from tests.support.websockets import Sockets


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    opened = await open_store(tmp_path)
    yield opened
    await opened.close()


@pytest.fixture
async def server(store: Store) -> AsyncIterator[Server]:
    """Give a server whose rows go to a real database."""
    running = await serve(store.writer)
    yield running
    await running.close()


@pytest.fixture
def held_writer() -> HeldWriter:
    return HeldWriter()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def held(held_writer: HeldWriter, clock: Clock) -> AsyncIterator[Server]:
    """Give a server whose rows reach the disk when the test says so."""
    running = await serve(held_writer, clock=clock)
    yield running
    await running.close()


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Give the certificate authority that the tests' servers and clients trust."""
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="session")
def server_pair(authority: Authority) -> Pair:
    """Give the certificate of the tests' servers, valid for localhost and 127.0.0.1."""
    return authority.issue("localhost")


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Run each test under both loops: one transport to the rest of the gateway, two ways to it."""
    return {"asyncio": asyncio.SelectorEventLoop, "gateway": GatewayLoop}


@pytest.fixture
def narrow(held: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """Give a server whose buffers, and the kernel's behind them, hold next to nothing."""
    monkeypatch.setattr(connection_module, "MAXIMUM_UNSENT", SMALL)
    assert held.listener._server is not None
    for sock in held.listener._server.sockets:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SMALL)
    return held


@pytest.fixture
async def sockets(
    tmp_path: Path, authority: Authority, server_pair: Pair
) -> AsyncIterator[Sockets]:
    opened = Sockets(await open_place("websocket", tmp_path, authority, server_pair))
    yield opened
    await opened.close()


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    if request.param == "tcp6":
        with socket.socket(socket.AF_INET6) as probe:
            try:
                probe.bind(("::1", 0))
            except OSError:
                pytest.skip(
                    "this machine does not allow IPv6; get it with: sysctl net.ipv6.conf.lo"
                )
    return str(request.param)


@pytest.fixture
async def open_at(
    kind: str, tmp_path: Path, authority: Authority, server_pair: Pair
) -> AsyncIterator[Open]:
    """Give a function that opens a place of this kind, with other settings if need be."""
    places: list[Place] = []

    async def open_at(**settings: object) -> Place:
        opened = await open_place(kind, tmp_path, authority, server_pair, **settings)  # type: ignore[arg-type]  # by name
        places.append(opened)
        return opened

    yield open_at
    for each in places:
        await each.close()


@pytest.fixture
async def place(open_at: Open) -> Place:
    return await open_at()

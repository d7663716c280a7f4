import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from gateway.clock import Clock
from gateway.server.gateway_loop import GatewayLoop
from tests.support.certificates import Authority, Pair
from tests.support.server import HeldWriter, Server, serve
from tests.support.storage import Store, open_store


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

"""A bare broker in a process of its own, and raw clients of it."""

from collections.abc import AsyncIterator, Iterator
from itertools import count

import pytest

from tests.support.gateway_process import GatewayProcess
from tests.support.raw_client import Clients

NUMBERS = count(1)


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """Give the broker that all tests of this folder share."""
    running = GatewayProcess(tmp_path_factory.mktemp("themes"))
    running.start()
    yield running
    assert running.stop() == 0
    assert "Traceback" not in running.log()
    assert " ERROR " not in running.log()


@pytest.fixture
async def clients(gateway: GatewayProcess) -> AsyncIterator[Clients]:
    """Give raw clients of the broker."""
    opened = Clients(gateway.port)
    yield opened
    await opened.close()


@pytest.fixture
def name() -> str:
    """Give a name that no other test uses, for client identifiers and first topic levels."""
    return f"theme{next(NUMBERS)}"

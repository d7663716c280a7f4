from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.support.processes.gateway_process import GatewayProcess
from tests.support.processes.mosquitto import Mosquitto
from tests.support.raw_client import Clients


@pytest.fixture
def fleet(mosquitto: Mosquitto) -> Mosquitto:
    """Give a running Mosquitto that stands for the fleet's broker."""
    return mosquitto


@pytest.fixture
def gateway(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[GatewayProcess]:
    """Give a running gateway, with the `CONFIG` of the test's file if there is one."""
    config: str | None = getattr(request.module, "CONFIG", None)
    process = GatewayProcess(tmp_path, config).start()
    yield process
    process.kill()


@pytest.fixture
async def clients(gateway: GatewayProcess) -> AsyncIterator[Clients]:
    """Give clients of the gateway that the test's file describes."""
    opened = Clients(gateway.port)
    yield opened
    await opened.close()

import functools
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import gateway_process
from tests.support.processes.gateway_process import GatewayProcess

MakeGateway = Callable[..., GatewayProcess]
Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """Give a running bare broker that the tests of a module share."""
    gateway = GatewayProcess(tmp_path_factory.mktemp("bare"))
    gateway.start()
    yield gateway
    gateway.kill()


@pytest.fixture
def tidegate(tmp_path: Path) -> Command:
    """Give a function that runs the command to its end, in a folder of its own."""
    return functools.partial(gateway_process.tidegate, folder=tmp_path)


@pytest.fixture
def make_gateway() -> Iterator[MakeGateway]:
    """Give what makes gateways; those that still run at the test's end are killed."""
    made: list[GatewayProcess] = []

    def make(*arguments: Any) -> GatewayProcess:
        made.append(GatewayProcess(*arguments))
        return made[-1]

    yield make
    for gateway in made:
        gateway.kill()

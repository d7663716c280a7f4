import os
from collections.abc import Callable, Iterator
from pathlib import Path
from random import SystemRandom
from typing import Any

import pytest

from crashtest.gateway_process import GatewayProcess
from tests.support.ports import free_port
from tests.support.processes.crash_gateway import ForkedGateway

LONG = int(os.environ.get("TIDEGATE_CRASH_ROUNDS", "0"))
"""Rounds of a long run, as `make crashtest` asks for; 0 for the short one of `make test`."""

MakeGateway = Callable[..., GatewayProcess]


@pytest.fixture
def seed() -> int:
    """Give a new seed each time, or the one in TIDEGATE_SEED; pytest shows it with a failure."""
    chosen = int(os.environ.get("TIDEGATE_SEED", SystemRandom().randrange(1_000_000)))
    print(f"repeat with TIDEGATE_SEED={chosen}")
    return chosen


@pytest.fixture
def make_gateway(tmp_path: Path) -> Iterator[MakeGateway]:
    """Give what makes gateways in the test's folder; what still runs at its end is killed."""
    made: list[GatewayProcess] = []

    def make(*arguments: Any, **more: Any) -> GatewayProcess:
        made.append(ForkedGateway(tmp_path, *arguments, port=free_port(), **more))
        return made[-1]

    yield make
    for gateway in made:
        gateway.kill()

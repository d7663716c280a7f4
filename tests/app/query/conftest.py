from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.gateway_here import Gateway, started
from tests.support.operator import Operator
from tests.support.ports import free_port
from tests.support.raw_client import Clients

CONFIG = """
[[listener]]
port = {port}
[[uplink]]
directory = "{folder}"
[[uplink.rule]]
topic = "sensors/#"
where = "payload.value > 20"
[[uplink.rule]]
topic = "orders/#"
[[channel]]
name = "jobs"
filter = "work/#"
"""


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    """Give a gateway with an uplink, two rules and a channel."""
    async with started(
        tmp_path, CONFIG.format(port=free_port(), folder=tmp_path / "landing")
    ) as made:
        yield made


@pytest.fixture
def port(gateway: Gateway) -> int:
    return int(gateway.configuration.listeners[0].port)


@pytest.fixture
async def operator(port: int) -> AsyncIterator[Operator]:
    made = await Operator.open(port)
    yield made
    await made.close()


@pytest.fixture
async def clients(port: int) -> AsyncIterator[Clients]:
    made = Clients(port)
    yield made
    await made.close()

"""A real gateway with two uplinks, one of them down, and the terminal UI of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.ports import free_port
from tests.support.processes.gateway_process import GatewayProcess
from tui.address import Address
from tui.app import TidegateApp
from tui.gateway_client import GatewayClient

CONFIG = """
[gateway]
id = "barn"
[broker]
remembered_topics = 100
[history]
keep = "1h"
[[channel]]
name = "jobs"
filter = "work/#"
[[uplink]]
name = "cloud"
directory = "{folder}/landing"
[[uplink.rule]]
topic = "sensors/#"
where = "payload.value > 20"
[[uplink]]
name = "plant"
url = "mqtt://127.0.0.1:{nobody}"
[[uplink.rule]]
topic = "sensors/#"
"""


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    """A running gateway."""
    made = GatewayProcess(tmp_path, CONFIG.format(folder=tmp_path, nobody=free_port()))
    made.start()
    yield made
    made.kill()


@pytest.fixture
def application(gateway: GatewayProcess) -> TidegateApp:
    return TidegateApp(GatewayClient(Address("127.0.0.1", gateway.port)))

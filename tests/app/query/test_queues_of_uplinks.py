"""Of several uplinks the one that all waiting messages are for has an age and bytes."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.app.query.test_queues import publish
from tests.support.gateway_here import Gateway, started
from tests.support.operator import Operator
from tests.support.ports import free_port
from tests.support.raw_client import Clients

CONFIG = """
[[listener]]
port = {port}
[[uplink]]
name = "cloud"
directory = "{folder}"
[[uplink.rule]]
topic = "both/#"
[[uplink]]
name = "plant"
url = "mqtt://127.0.0.1:{dead}"
[[uplink.rule]]
topic = "#"
"""


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    landing = tmp_path / "landing"
    text = CONFIG.format(port=free_port(), dead=free_port(), folder=landing)
    async with started(tmp_path, text) as made:
        yield made


async def test_what_waits_for_one_alone_is_told_with_its_age(
    operator: Operator, clients: Clients
) -> None:
    publisher = await clients.connect("p")
    await publish(publisher, "both/x", b"1", b"2")

    async def rows() -> dict[str, dict[str, object]]:
        answer = await operator.ask("queues", kind="uplink")
        return {row["name"]: row for row in answer["rows"]}

    found = await rows()
    while found["cloud"]["depth"]:
        found = await rows()
    assert found["plant"]["depth"] == 2
    assert isinstance(found["plant"]["oldest_seconds"], float)
    assert found["plant"]["bytes"]
    assert (found["cloud"]["oldest_seconds"], found["cloud"]["bytes"]) == (None, None)

"""What uplink rules remember, across a power cut and across a stop."""

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.mqtt.packets import PubAck, Publish
from tests.support.ports import free_port
from tests.support.processes.gateway_process import GatewayProcess
from tests.support.raw_client import Clients

CONFIG = """
[gateway]
id = "barn"
[uplink]
url = "mqtt://127.0.0.1:{port}"
[[uplink.rule]]
topic = "band/#"
where = "DEADBAND(payload.value, 10)"
[[uplink.rule]]
topic = "door/#"
where = "CHANGED(payload.value)"
[[uplink.rule]]
topic = "rise/#"
where = "payload.value - PREV(payload.value) > 5"
"""


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    process = GatewayProcess(tmp_path, CONFIG.format(port=free_port())).start()
    yield process
    process.kill()


async def publish(gateway: GatewayProcess, topic: str, *values: int) -> None:
    """Publish each value and wait until it is acknowledged."""
    clients = Clients(gateway.port)
    client = await clients.connect("publisher")
    for number, value in enumerate(values, 1):
        payload = json.dumps({"value": value}).encode()
        await client.send(Publish(topic, payload, qos=1, packet_id=number))
        assert isinstance(await client.receive(), PubAck)
    await clients.close()


def forwarded(gateway: GatewayProcess, topic: str) -> list[int]:
    """Return the values that wait for the fleet; the gateway does not run."""
    statement = "SELECT payload FROM outbox WHERE topic = ? ORDER BY id"
    database = sqlite3.connect(gateway.data / "tidegate.db")
    rows = database.execute(statement, (topic,)).fetchall()
    database.close()
    return [json.loads(payload)["value"] for (payload,) in rows]


@pytest.mark.parametrize("graceful", [True, False], ids=["stop", "kill"])
async def test_rules_remember(gateway: GatewayProcess, graceful: bool) -> None:
    for values in ((20, 25, 31, 33), (39, 42)):
        for topic in ("band/a", "door/a", "rise/a"):
            await publish(gateway, topic, *values)
        if graceful:
            assert gateway.stop() == 0
        else:
            gateway.kill()
        if values[0] == 20:
            gateway.start()
    assert forwarded(gateway, "band/a") == [20, 31, 42]
    assert forwarded(gateway, "door/a") == [20, 25, 31, 33, 39, 42]
    # 39 rises from 33, which was not forwarded: a kill takes it from the memory
    assert forwarded(gateway, "rise/a") == ([31, 39] if graceful else [31])

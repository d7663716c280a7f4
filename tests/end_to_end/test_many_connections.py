"""A gateway holds thousands of connections, and tells those for whom there is no room."""

import asyncio
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.mqtt.packets import MQTT_3_1_1, MQTT_5, ConnAck, Connect, PingReq, PingResp, Publish
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.processes.gateway_process import GatewayProcess
from tests.support.raw_client import Clients, RawClient

CONNECTIONS = 2_000
AT_ONCE = 100

KIB_EACH = 4
"""Memory of a connection on which nothing happens; 1.5 were measured."""


@pytest.fixture(autouse=True)
def enough_descriptors() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if before[1] != resource.RLIM_INFINITY and before[1] < CONNECTIONS + 500:
        pytest.skip(
            f"this machine does not allow {CONNECTIONS} connections;"
            f" get it with: ulimit -Hn {CONNECTIONS + 500}"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    config = f"""
        [gateway]
        id = "crowded"
        [[listener]]
        maximum_connections = {CONNECTIONS + 2}
    """
    process = GatewayProcess(tmp_path, config).start(anew=True)  # its memory is measured
    yield process
    process.kill()


async def test_thousands_of_connections_are_held(gateway: GatewayProcess) -> None:
    clients = Clients(gateway.port)
    subscriber = await clients.connect("subscriber")
    await subscriber.subscribe("a")
    limits = asyncio.Semaphore(AT_ONCE)

    async def connect(number: int) -> RawClient:
        async with limits:
            return await clients.connect(f"idle-{number}", MQTT_3_1_1)

    before = gateway.memory()
    idle = await asyncio.gather(*(connect(number) for number in range(CONNECTIONS)))
    assert gateway.memory() - before < CONNECTIONS * KIB_EACH
    publisher = await clients.connect("publisher")
    await publisher.send(Publish("a", b"through the crowd"))
    assert await subscriber.receive() == Publish("a", b"through the crowd")
    await asyncio.gather(*(client.send(PingReq()) for client in idle))
    assert [await client.receive() for client in idle] == [PingResp()] * CONNECTIONS
    one_too_many = await clients.open()
    await one_too_many.send(Connect("one too many", MQTT_5))
    assert (await one_too_many.take(ConnAck)).reason_code == ReasonCode.QUOTA_EXCEEDED
    await clients.close()
    assert gateway.stop() == 0

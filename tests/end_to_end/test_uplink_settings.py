"""A whole gateway with what its file says of the way to the fleet."""

import asyncio
from pathlib import Path

from gateway.mqtt.packets import Publish
from pipeline.records.batch import read_batch
from tests.support.disk.storage import until
from tests.support.fleet.fleet_broker import FleetBroker
from tests.support.processes.gateway_process import GatewayProcess
from tests.support.raw_client import RawClient

CONFIG = """\
[gateway]
id = "barn"
[uplink]
url = "mqtt://127.0.0.1:{port}"
batch = "zlib"
batch_delay = 0.05
budget = "2MB/day"
schedule = ["* * * * * for 24h"]
"""

BUDGET_USED = "$SYS/broker/tidegate/uplink/budget_used"


async def test_batches_budget_and_session_over_stops_and_crashes(tmp_path: Path) -> None:
    fleet = FleetBroker()
    await fleet.start()
    gateway = GatewayProcess(tmp_path, CONFIG.format(port=fleet.port))
    try:
        await _stop_and_crash(gateway, fleet)
    finally:
        gateway.kill()
        await fleet.stop()
    # Resumed after the stop, which left nothing unanswered; not after the crash.
    assert [connect.clean_start for connect in fleet.connects] == [True, False, True]


async def _stop_and_crash(gateway: GatewayProcess, fleet: FleetBroker) -> None:
    await asyncio.to_thread(gateway.start)
    client = await RawClient.open(gateway.port)
    await client.connect_as("sensor")
    await client.send(Publish("sensors/n1/temperature", b'{"value":21}'))
    await until(lambda: any(each.topic.endswith("/batch") for each in fleet.publishes))
    [batch] = [each for each in fleet.publishes if each.topic.endswith("/batch")]
    [record] = read_batch(batch.payload, "barn", 0)
    assert (record["topic"], record["seq"]) == ("sensors/n1/temperature", 1)
    await client.close()

    assert await asyncio.to_thread(gateway.stop) == 0
    await asyncio.to_thread(gateway.start)
    await until(lambda: len(fleet.connects) == 2)
    used = await _figure(gateway.port, BUDGET_USED)
    assert 300 < int(used) < 10_000  # of both runs
    gateway.kill()
    await asyncio.to_thread(gateway.start)
    await until(lambda: len(fleet.connects) == 3)


async def _figure(port: int, topic: str) -> bytes:
    client = await RawClient.open(port)
    await client.connect_as("reader")
    await client.subscribe(topic)
    publish = await client.receive()
    await client.close()
    assert isinstance(publish, Publish)
    return publish.payload

"""Several uplinks: each gets what its rules take, and one that is down delays no other."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gateway.mqtt.packets import PubAck, Publish
from tests.support.disk.storage import until
from tests.support.fleet.fleet_broker import FleetBroker
from tests.support.processes.gateway_process import GatewayProcess, tidegate
from tests.support.raw_client import RawClient

CONFIG = """\
[gateway]
id = "barn"
[[listener]]
host = "127.0.0.1"
[broker]
sys_interval = 0.1

[[uplink]]
name = "cloud"
url = "mqtt://127.0.0.1:{cloud}"
[[uplink.rule]]
topic = "sensors/#"
where = "payload.value >= 50"
uplink = ["cloud", "plant"]
[[uplink.rule]]
topic = "sensors/#"

[[uplink]]
name = "plant"
url = "mqtt://127.0.0.1:{plant}"
[[uplink.rule]]
topic = "quick/#"
qos = 0
"""


@contextmanager
def _gateway(folder: Path, cloud: FleetBroker, plant: FleetBroker) -> Iterator[GatewayProcess]:
    gateway = GatewayProcess(folder, CONFIG.format(cloud=cloud.port, plant=plant.port))
    gateway.start()
    try:
        yield gateway
    finally:
        gateway.kill()


async def _publish(port: int, topic: str, values: range) -> None:
    """Publish at QoS 1 and wait for every PUBACK."""
    client = await RawClient.open(port)
    await client.connect_as("publisher")
    for number, value in enumerate(values, 1):
        await client.send(Publish(topic, b'{"value":%d}' % value, 1, packet_id=number))
    for _ in values:
        assert isinstance(await client.receive(), PubAck)
    await client.close()


def _values(broker: FleetBroker, topic: str = "sensors/n1") -> list[int]:
    return [json.loads(p.payload)["value"] for p in broker.data if p.topic.endswith(topic)]


def _reported(broker: FleetBroker) -> dict[int, str]:
    """Return the outcome of each number of the sensors' start that this fleet was told."""
    reported: dict[int, str] = {}
    epoch = dict(broker.data[0].properties.user_properties)["seq"].partition(".")[0]
    for publish in broker.publishes:
        entry = json.loads(publish.payload) if publish.topic.endswith("/ledger") else {}
        if entry.get("epoch") == epoch:
            for first, last, outcome, _ in entry["ranges"]:
                for number in range(first, last + 1):
                    reported.setdefault(number, outcome)
    return reported


async def _uplink(gateway: GatewayProcess, action: str, name: str) -> tuple[int, str]:
    """Return the exit status and the output of `tidegate uplink`."""
    words = ("uplink", action, name, f"mqtt://127.0.0.1:{gateway.port}")
    done = await asyncio.to_thread(tidegate, *words)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.uncovered
async def test_one_that_is_down_delays_no_other_and_each_is_told_every_number(
    tmp_path: Path,
) -> None:
    cloud, plant = FleetBroker(), FleetBroker()
    await cloud.start()
    with _gateway(tmp_path, cloud, plant) as gateway:
        await _publish(gateway.port, "sensors/n1", range(100))
        await until(lambda: sorted(_values(cloud)) == list(range(100)))
        status, texts = await _uplink(gateway, "status", "plant")
        assert (status, "50 messages" in texts, "disconnected" in texts) == (1, True, True), texts
        status, texts = await _uplink(gateway, "status", "cloud")
        assert (status, "waiting       0 messages" in texts) == (0, True), texts
        await asyncio.sleep(0.2)  # what is delivered is noted with the next commit, 50 ms later
        gateway.kill()
        await plant.start()
        gateway.start()
        await until(lambda: sorted(_values(plant)) == list(range(50, 100)))
        assert len(_values(cloud)) == 100  # it is sent nothing twice that it has acknowledged
        assert await _uplink(gateway, "pause", "cloud") == (0, "uplink cloud: pause\n")
        await _publish(gateway.port, "quick/n1", range(20))
        await until(lambda: sorted(_values(plant, "quick/n1")) == list(range(20)))
        assert {p.qos for p in plant.data if p.topic.endswith("quick/n1")} == {0}
        assert not _values(cloud, "quick/n1")
        assert (await _uplink(gateway, "resume", "cloud"))[0] == 0
        filtered = dict.fromkeys(range(1, 51), "filtered")
        await until(lambda: _reported(plant).items() >= filtered.items())
        await until(lambda: _reported(cloud) == dict.fromkeys(range(1, 101), "delivered"))
        assert (
            "has no uplink moon; there are cloud, plant"
            in (await _uplink(gateway, "status", "moon"))[1]
        )
    await cloud.stop()
    await plant.stop()

"""The fleet's broker goes away and comes back, and the gateway is killed while it catches up."""

import json
import sqlite3
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.fleet.fleet_collector import FleetCollector, Received
from tests.support.nodes.sensor_client import SensorClient
from tests.support.processes.gateway_process import GatewayProcess
from tests.support.processes.mosquitto import Mosquitto
from tests.support.waiting import until

pytestmark = pytest.mark.mosquitto

MESSAGES = 1_000

CONFIG = """
[gateway]
id = "barn"
[uplink]
url = "mqtt://127.0.0.1:{port}"
{more}
[[uplink.rule]]
topic = "sensors/#"
[[uplink.rule]]
topic = "alarms/#"
stream = "alarms"
"""


@pytest.fixture
def gateway(tmp_path: Path, fleet: Mosquitto) -> Iterator[GatewayProcess]:
    folder = tmp_path / "gateway"
    folder.mkdir()
    process = GatewayProcess(folder, CONFIG.format(port=fleet.port, more=""))
    yield process
    process.kill()


def numbers(messages: list[Received]) -> set[int]:
    """The values that `SensorClient` counted up."""
    return {json.loads(message.payload)["value"] for message in messages}


def rows(gateway: GatewayProcess) -> int:
    """How many rows wait in the outbox on disk."""
    with sqlite3.connect(gateway.data / "tidegate.db") as database:
        (count,) = database.execute("SELECT count(*) FROM outbox").fetchone()
    database.close()
    return int(count)


def firsts(messages: list[Received]) -> list[Received]:
    """Each name once, where it came first."""
    return list({message.name: message for message in reversed(messages)}.values())[::-1]


def test_what_was_published_while_the_fleet_was_away_arrives_in_order(
    gateway: GatewayProcess, fleet: Mosquitto
) -> None:
    collector = FleetCollector(fleet.port)
    fleet.save()
    gateway.start()
    until(lambda: any(b"online" in m.payload for m in collector.received), "the link is up")
    sensor = SensorClient(gateway.port, "sensors/n1/count")
    sensor.publish(10)
    until(lambda: len(collector.data) == 10, "the live messages arrive", gateway.log)
    fleet.kill()
    alarm = SensorClient(gateway.port, "alarms/n1")
    sensor.publish(MESSAGES)
    alarm.publish(100)
    sensor.wait(10 + MESSAGES)
    alarm.wait(100)
    assert rows(gateway) >= MESSAGES + 100
    fleet.start()
    wanted = set(range(1, 11 + MESSAGES))
    until(
        lambda: len({message.name for message in collector.data}) == len(wanted) + 100,
        "everything arrives",
        gateway.log,
    )
    readings = [message for message in collector.data if "/sensors/" in message.topic]
    assert numbers(readings) == wanted
    for stream in ("main", "alarms"):
        names = [message.name for message in firsts(collector.data) if message.name[1] == stream]
        assert all(one[2] < other[2] for one, other in pairwise(names))
    assert readings[0].first("resent") is None
    assert readings[-1].first("resent") == "1"
    until(lambda: rows(gateway) == 0, "the outbox is empty", gateway.log)
    for client in (sensor, alarm, collector):
        client.close()
    assert gateway.stop() == 0


def test_killed_in_the_middle_of_a_drain_nothing_acknowledged_is_lost(
    gateway: GatewayProcess, fleet: Mosquitto
) -> None:
    collector = FleetCollector(fleet.port)
    fleet.save()
    fleet.kill()
    gateway.configure(
        CONFIG.format(port=fleet.port, more="backlog_messages_per_second = 100\nwindow = 100")
    )
    gateway.start()
    sensor = SensorClient(gateway.port, "sensors/n1/count")
    sensor.publish(MESSAGES)
    sensor.wait(MESSAGES)
    sensor.close()
    fleet.start()
    until(lambda: len(collector.data) > 200, "the drain is under way", gateway.log)
    gateway.kill()
    assert 0 < rows(gateway) < MESSAGES
    gateway.configure(CONFIG.format(port=fleet.port, more=""))
    gateway.start()
    until(
        lambda: len({message.name for message in collector.data}) == MESSAGES,
        "everything arrives",
        gateway.log,
    )
    assert numbers(collector.data) == sensor.acknowledged == set(range(1, MESSAGES + 1))
    by_value = {(json.loads(each.payload)["value"], each.name) for each in collector.data}
    assert len(by_value) == MESSAGES, "a message sent twice has the same number"
    assert len(collector.data) - MESSAGES <= 100, "twice at most what was in the window"
    collector.close()

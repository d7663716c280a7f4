"""Whatever the disk says the gateway starts, tells what it cannot promise, and recovers."""

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from paho.mqtt.enums import MQTTProtocolVersion

from gateway.storage.engine.free_space import RETRY_SECONDS
from tests.support.disk.small_disk import SmallDisk, SysFigures
from tests.support.fleet.fleet_collector import FleetCollector
from tests.support.paho_clients import Publisher, SessionAway
from tests.support.processes.gateway_process import COMMAND, GatewayProcess
from tests.support.processes.mosquitto import Mosquitto
from tests.support.waiting import until

pytestmark = [pytest.mark.mosquitto, pytest.mark.mosquitto_clients, pytest.mark.mount]

MEGABYTES = 24

CONFIG = """
[gateway]
id = "barn"
[uplink]
url = "mqtt://127.0.0.1:{port}"
[[uplink.rule]]
topic = "sensors/#"
"""

QUOTA_EXCEEDED = 0x97


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Mosquitto]:
    broker = Mosquitto(tmp_path)
    yield broker
    broker.kill()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    (tmp_path / "gateway").mkdir()
    disk = SmallDisk(tmp_path / "gateway" / "data", MEGABYTES)
    disk.mount()
    yield disk
    disk.unmount()


@pytest.fixture
def gateway(tmp_path: Path, disk: SmallDisk, fleet: Mosquitto) -> Iterator[GatewayProcess]:
    process = GatewayProcess(tmp_path / "gateway", CONFIG.format(port=fleet.port))
    yield process
    process.kill()


@pytest.fixture
def collector(fleet: Mosquitto) -> Iterator[FleetCollector]:
    """Who is subscribed at the fleet's broker, which is away until it is started."""
    fleet.start()
    collector = FleetCollector(fleet.port, "tidegate/barn/data/#")
    fleet.save()
    fleet.kill()
    yield collector
    collector.close()


def numbered(number: int) -> bytes:
    return json.dumps({"value": number, "padding": "x" * 8_000}).encode()


def publish_until_full(publisher: Publisher) -> list[int]:
    """Return the numbers that were acknowledged, once refusals lasted longer than a look for room.

    Before that, what a first refusal set in motion may still find some.
    """
    acknowledged: list[int] = []
    refused_since = None
    for number in range(1, 20_000):
        now = time.monotonic()
        if publisher.publish("sensors/n1/x", numbered(number)) != QUOTA_EXCEEDED:
            acknowledged.append(number)
            refused_since = None
        elif refused_since is None:
            refused_since = now
        elif now - refused_since > 3 * RETRY_SECONDS:
            return acknowledged
        else:
            time.sleep(0.01)  # the disk does not get fuller by being asked
    raise AssertionError("20,000 messages did not fill the disk")


def wait_for(numbers: list[int], collector: FleetCollector, gateway: GatewayProcess) -> None:
    """Return when these are at the fleet, and fail when none comes for a while.

    All together may take long: where PUBACKs are slow the backlog is paced down.
    """
    missing = set(numbers)

    def fewer() -> bool:
        before = len(missing)
        while collector.received:
            missing.discard(json.loads(collector.received.pop().payload)["value"])
        return len(missing) < before

    while missing:
        until(fewer, "the next of the acknowledged arrives", lambda: f"{missing}\n{gateway.log()}")


@pytest.mark.slow
def test_a_full_disk_refuses_and_drains_and_recovers(
    gateway: GatewayProcess, fleet: Mosquitto, collector: FleetCollector
) -> None:
    gateway.start()
    figures, publisher = SysFigures(gateway.port), Publisher(gateway.port)
    away = SessionAway(gateway.port, "owed/#")
    acknowledged = publish_until_full(publisher)
    assert len(acknowledged) > 500
    figures.until("alarm/disk", "the disk is full")
    assert publisher.publish("elsewhere", b"no rule, no disk") < 0x80

    # QoS 0 is dropped and counted
    until(lambda: figures.get("storage/rejected"), "a count")
    before = int(figures.get("storage/rejected"))
    assert publisher.publish("sensors/n1/x", b"{}", qos=0) == 0
    until(lambda: int(figures.get("storage/rejected")) > before, "QoS 0 counted")

    # nor can a session that is away be owed anything more; what it was owed is kept
    assert publisher.publish("owed/1", b"{}") == QUOTA_EXCEEDED

    # MQTT 3.1.1: no answer, the connection is closed
    old = Publisher(gateway.port, MQTTProtocolVersion.MQTTv311)
    old.send("sensors/n1/x", numbered(0))
    until(lambda: old.disconnects, "the end of the connection")
    old.close()

    # the fleet is there again: what was acknowledged goes up, and that makes room
    fleet.start()
    figures.until("alarm/disk", "")
    wait_for(acknowledged, collector, gateway)
    # what is removed from the outbox takes room, too, before it gives some back
    until(lambda: publisher.publish("sensors/n1/x", numbered(10_000)) == 0, "room for one more")
    until(lambda: publisher.publish("owed/2", b"{}") == 0, "room for what a session is owed")
    assert away.comes_back() == ["owed/2"]
    until(lambda: figures.get("outbox/rows") == "0", "an empty outbox")
    until((gateway.data / "reserve").exists, "the reserve")
    for each in (figures, publisher):
        each.close()


def test_a_start_with_a_full_disk_and_room_that_comes_later(
    gateway: GatewayProcess, disk: SmallDisk
) -> None:
    gateway.start()
    publisher = Publisher(gateway.port)
    assert publisher.publish("sensors/n1/x", numbered(1)) == 0
    publisher.close()
    gateway.kill()
    disk.fill()
    gateway.start()
    figures, publisher = SysFigures(gateway.port), Publisher(gateway.port)
    figures.until("storage/durability", "commit")
    figures.until("outbox/rows", "1")
    disk.fill()  # also what the start has given up for itself
    publisher.publish("sensors/n1/x", numbered(2))
    figures.until("alarm/disk", "the disk is full")
    disk.empty()
    figures.until("alarm/disk", "")
    assert publisher.publish("sensors/n1/x", numbered(1_000)) == 0
    figures.close()
    publisher.close()


def test_a_start_without_any_room_refuses_until_there_is_some(
    gateway: GatewayProcess, disk: SmallDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk.fill()
    gateway.start()
    figures, publisher = SysFigures(gateway.port), Publisher(gateway.port)
    figures.until("alarm/durability", "no space")
    figures.until("storage/durability", "memory")
    assert publisher.publish("sensors/n1/x", numbered(1)) == 0x97
    figures.until("outbox/rows", "0")
    figures.close()
    publisher.close()
    disk.empty()
    until(lambda: gateway.log().count("listens on") == 2, "it has started anew", gateway.log)
    assert gateway.process is not None
    assert gateway.process.poll() is None
    figures, publisher = SysFigures(gateway.port), Publisher(gateway.port)
    figures.until("storage/durability", "commit")
    assert not figures.get("alarm/durability")
    assert publisher.publish("sensors/n1/x", numbered(1)) == 0
    figures.close()
    publisher.close()
    assert gateway.stop() == 0


def test_a_read_only_folder_starts_in_memory_with_what_is_there(
    gateway: GatewayProcess, disk: SmallDisk, fleet: Mosquitto, collector: FleetCollector
) -> None:
    gateway.start()
    publisher = Publisher(gateway.port)
    assert publisher.publish("sensors/n1/x", numbered(1)) == 0
    publisher.close()
    gateway.kill()  # the row is in the log alone, which nobody can fold in on such a disk
    disk.remount("ro")
    gateway.start()
    figures, publisher = SysFigures(gateway.port), Publisher(gateway.port)
    figures.until("storage/durability", "memory")
    figures.until("alarm/durability", "read-only file system")
    assert "restart the gateway" in figures.get("alarm/durability")
    assert publisher.publish("sensors/n1/x", numbered(2)) == 0
    assert publisher.publish("elsewhere", b"retained") < 0x80
    figures.until("outbox/rows", "2")
    second = subprocess.run(
        [str(COMMAND), "run", "--port", "1", "--data", str(gateway.data)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (second.returncode, second.stderr.count("\n")) == (2, 1)
    assert "is in use" in second.stderr
    fleet.start()
    figures.until("outbox/rows", "0")
    until(lambda: len(collector.received) >= 2, "both at the fleet")
    for each in (figures, publisher):
        each.close()
    assert gateway.stop() == 0

    disk.remount("rw")
    gateway.start()
    figures = SysFigures(gateway.port)
    figures.until("storage/durability", "commit")
    assert not figures.get("alarm/durability")
    figures.close()


def test_a_disk_without_the_folder_starts_too(gateway: GatewayProcess, disk: SmallDisk) -> None:
    disk.remount("ro")
    gateway.start()
    assert list(disk.folder.iterdir()) == []
    assert gateway.stop() == 0

"""Bridges of a running gateway: a kind by its entry point, and a file that changes."""

import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.mqtt.packets import Publish, Subscribe, SubscriptionRequest
from tests.support.nodes.serial_line import SerialLine
from tests.support.processes.gateway_process import GatewayProcess
from tests.support.raw_client import Clients, RawClient
from tests.support.waiting import until

CONFIG = """
[broker]
sys_interval = 0.1

[[thermal]]
folder = "zones"
interval = 0.1
retain = true
"""

PORT = '[[serial]]\nport = "ttyNODE"\nformat = "json"\nnode = "{}"\n'


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[GatewayProcess]:
    zone = tmp_path / "zones" / "thermal_zone0"
    zone.mkdir(parents=True)
    (zone / "temp").write_text("45123\n")
    process = GatewayProcess(tmp_path, CONFIG)
    process.start()
    yield process
    process.kill()


async def next_on(watcher: RawClient, topic: str, text: bytes) -> Publish:
    """Return the next message on a topic with this text in it."""
    while True:
        packet = await watcher.receive()
        if isinstance(packet, Publish) and packet.topic == topic and text in bytes(packet.payload):
            return packet


async def test_bridges_come_and_change_with_the_file(
    gateway: GatewayProcess, tmp_path: Path
) -> None:
    assert gateway.process is not None
    line = SerialLine(tmp_path / "ttyNODE")
    line.plug()
    clients = Clients(gateway.port)
    watcher = await clients.connect("watcher")
    for topic_filter in ("$SYS/broker/tidegate/+/+/#", "sensors/#"):
        await watcher.send(Subscribe(1, [SubscriptionRequest(topic_filter, 0)]))
    first = await next_on(watcher, "sensors/host-zone0/temperature", b"45.123")
    assert json.loads(first.payload)["unit"] == "°C"

    gateway.configure(CONFIG + PORT.format("n1"))
    gateway.process.send_signal(signal.SIGHUP)
    await next_on(watcher, "$SYS/broker/tidegate/serial/ttyNODE/state", b"open")
    line.send(b'{"temp":21.5}\n')
    await next_on(watcher, "sensors/n1/temperature", b"21.5")

    gateway.configure(CONFIG + PORT.format("n2"))
    gateway.process.send_signal(signal.SIGHUP)
    opened = "serial ttyNODE: open"
    until(lambda: gateway.log().count(opened) == 2, "opened again", gateway.log)
    line.send(b'{"temp":22.5}\n')
    await next_on(watcher, "sensors/n2/temperature", b"22.5")

    gateway.configure(CONFIG + PORT.format("a/b"))
    gateway.process.send_signal(signal.SIGHUP)
    alarm = await next_on(watcher, "$SYS/broker/tidegate/alarm/configuration", b"serial[0].node")
    assert "1 to 64 bytes without /" in json.loads(alarm.payload)["text"]
    line.send(b'{"temp":23.5}\n')
    await next_on(watcher, "sensors/n2/temperature", b"23.5")

    gateway.configure(CONFIG)
    gateway.process.send_signal(signal.SIGHUP)
    await next_on(watcher, "$SYS/broker/tidegate/serial/ttyNODE/state", b"off")
    await clients.close()
    log = gateway.log()
    assert log.count("thermal thermal: open") == 1
    assert log.count(opened) == 2
    assert gateway.stop() == 0
    line.close()

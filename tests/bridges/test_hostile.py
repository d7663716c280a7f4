"""A whole gateway and devices that send anything: it is counted, memory stays, others go on."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.mqtt.packets import Publish, Subscribe, SubscriptionRequest
from tests.support.nodes.serial_line import SerialLine
from tests.support.processes.gateway_process import GatewayProcess
from tests.support.raw_client import Clients
from tests.support.waiting import SECONDS

FORMATS = ("frames", "json", "csv", "nmea", "regex", "raw")
FLOOD = 3_000_000
"""Bytes for each format."""
GROWTH = 30_000
"""KiB by which the gateway may grow meanwhile."""


class Flooded(SerialLine):
    """A line whose other end is written to as fast as it reads."""

    def write_all(self, data: bytes) -> None:
        deadline = time.monotonic() + SECONDS
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self.descriptor, view[:4096]) :]
            except BlockingIOError:
                assert time.monotonic() < deadline, "the gateway reads no more"
                time.sleep(0.001)


@pytest.fixture
def lines(tmp_path: Path) -> Iterator[dict[str, Flooded]]:
    lines = {name: Flooded(tmp_path / f"tty-{name}") for name in (*FORMATS, "healthy")}
    for line in lines.values():
        line.plug()
    yield lines
    for line in lines.values():
        line.close()


@pytest.fixture
def gateway(tmp_path: Path, lines: dict[str, Flooded]) -> Iterator[GatewayProcess]:
    tables = [
        f'[[serial]]\nport = "tty-{name}"\nformat = "{name}"\n'
        + ("pattern = '(?P<v>(a+)+)b$'\n" if name == "regex" else "")
        for name in FORMATS
    ]
    healthy = '[[serial]]\nport = "tty-healthy"\nformat = "json"\nnode = "healthy"\n'
    process = GatewayProcess(tmp_path, "[broker]\nsys_interval = 0.2\n" + "".join(tables) + healthy)
    process.start()
    yield process
    process.kill()


ODD_LINES = (
    b'{"quantity":"x","value":1e999}\n{"quantity":"x","value":NaN}\n{"temp":1e999,"time":1e999}\n'
    b'{"quantity":"x","value":' + b"9" * 900 + b"}\n"
    b'{"temp":1,"time":-5}\n{"node":"' + b"n" * 500 + b'","temp":1}\n{"a":{"a":{"a":{"a":1}}}}\n'
    b'{"temp":2,"time":4102444800000}\n{"temp":3,"time":0}\n1e999,2\n$GPGGA,1*00\n'
)


@pytest.mark.slow
@pytest.mark.uncovered
async def test_floods_are_counted_and_a_healthy_neighbour_is_heard(
    gateway: GatewayProcess, lines: dict[str, Flooded]
) -> None:
    clients = Clients(gateway.port)
    watcher = await clients.connect("watcher")
    await watcher.send(Subscribe(1, [SubscriptionRequest("sensors/healthy/#", 0)]))
    before = gateway.memory()
    for name in FORMATS:
        line = lines[name]
        line.write_all(ODD_LINES)
        line.write_all(b"a" * 1_000_000 + b"\n")
        line.write_all(os.urandom(FLOOD // 3) + bytes(range(256)) * (FLOOD // 3 // 256))
        lines["healthy"].send(b'{"temp":21.5}\n')
        packet = await watcher.receive()
        while not isinstance(packet, Publish):
            packet = await watcher.receive()
        assert packet.topic == "sensors/healthy/temperature"
    assert gateway.memory() - before < GROWTH
    await clients.close()
    assert gateway.stop() == 0
    log = gateway.log()
    assert "Traceback" not in log
    assert "fault" not in log
    assert len(log) < 500_000

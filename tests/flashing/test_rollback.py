"""`tidegate firmware update --all` at a node that samples once a second for a running gateway."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import paho.mqtt.client as paho
import pytest
from node.simulated_sensor import SimulatedSensor
from paho.mqtt.enums import CallbackAPIVersion

from gateway.cli.main import main
from tests.flashing.test_flash import HANGING
from tests.support.nodes.stand_in_board import StandInBoard
from tests.support.processes.gateway_process import GatewayProcess
from tests.support.waiting import until

CONFIG = """
[[listener]]
port = {listener}

[[serial]]
port = "{port}"
"""
SETTINGS = """
board = "pico"
name = "barn1"
interval = 1

[[sensor]]
driver = "simulated"
"""


class Subscriber:
    """Keeps the node's temperatures and their times."""

    def __init__(self, port: int) -> None:
        self.heard: list[tuple[int, float]] = []
        self._client = paho.Client(CallbackAPIVersion.VERSION2)
        self._client.on_message = self._take
        self._client.connect("127.0.0.1", port)
        self._client.subscribe("sensors/barn1/temperature", 1)
        self._client.loop_start()

    def _take(self, _client: paho.Client, _data: object, message: paho.MQTTMessage) -> None:
        payload = json.loads(message.payload)
        self.heard.append((payload["time"], payload["value"]))

    def wait_for(self, more: int) -> None:
        wanted = len(self.heard) + more
        until(lambda: len(self.heard) >= wanted, f"{more} more readings arrive")

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


@pytest.fixture
def gateway(board: StandInBoard, tmp_path: Path) -> Iterator[GatewayProcess]:
    process = GatewayProcess(tmp_path, "")
    process.configure(CONFIG.format(listener=process.port, port=board.port))
    yield process
    process.kill()


def measured(count: int) -> list[float]:
    """Return the first temperatures of a start."""
    sensor = SimulatedSensor(1)
    decimals = [sensor.read()[0][1] for _ in range(count)]
    return [float(f"{mantissa}e{exponent}") for mantissa, exponent in decimals]


def starts_of(temperatures: list[float]) -> list[list[float]]:
    """Return what came of each start: all that was measured, in that order, and nothing twice."""
    (first,) = measured(1)
    begins = [at for at, value in enumerate(temperatures) if value == first]
    ends = [*begins[1:], len(temperatures)]
    starts = [temperatures[begin:end] for begin, end in zip(begins, ends, strict=True)]
    assert begins[0] == 0
    for start in starts:
        assert start == measured(len(start))
    return starts


@pytest.mark.uncovered
@pytest.mark.slow
@pytest.mark.micropython
def test_a_version_that_hangs_is_taken_back_after_a_minute(
    board: StandInBoard,
    tmp_path: Path,
    gateway: GatewayProcess,
    other_main: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """No sample is lost or comes twice, neither then nor when a version stays."""
    gateway.start()
    subscriber = Subscriber(gateway.port)
    settings = tmp_path / "node.toml"
    settings.write_text(SETTINGS)
    first = ["firmware", "flash", str(settings), "--port", board.port, "--source"]
    assert main([*first, "--gateway", f"mqtt://127.0.0.1:{gateway.port}"]) == 0
    (before,) = re.findall(r"version (\S+), installed", capsys.readouterr().out)
    update = ["firmware", "update", "--all", "--config", str(gateway.folder / "gateway.toml")]
    subscriber.wait_for(5)
    other_main.append(HANGING)
    assert main(update) == 1
    output = capsys.readouterr()
    # Both count the minute, and either may be the first: the command, or the board, which restarts.
    taken_back = rf"version 2 (sent no reading|ended) within 60 s; version {re.escape(before)} runs"
    assert re.search(taken_back, output.err)
    assert "0 of 1 nodes have this version" in output.out
    subscriber.wait_for(5)
    other_main.clear()
    assert main(update) == 0
    assert "1 of 1 nodes have this version" in capsys.readouterr().out
    subscriber.wait_for(5)
    subscriber.close()
    in_order = [value for _, value in sorted(subscriber.heard)]  # some were sent a second time
    assert len(starts_of(in_order)) >= 3, "before, between and after"

"""The command `update`: the gateway puts its own version onto a node's board, and answers."""

import json
from pathlib import Path
from queue import Queue

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from gateway.app import nodes
from gateway.app.nodes import update_node
from gateway.flashing.flash import flash
from gateway.flashing.port import Port
from tests.flashing.test_flash import Heard
from tests.support.nodes.micropython import find
from tests.support.nodes.stand_in_board import StandInBoard
from tests.support.processes.gateway_process import GatewayProcess
from tests.support.waiting import SECONDS

CONFIG = """
[[serial]]
port = "{port}"
"""


class Lender:
    """Notes for how long a port is lent."""

    def __init__(self, *, has: bool = True) -> None:
        self.lent: list[tuple[str, float]] = []
        self._has = has

    def lend(self, path: str, seconds: float) -> bool:
        self.lent.append((path, seconds))
        return self._has


@pytest.mark.parametrize("port", ["topic://nodes/n1", "usb:1234:5678", "/dev/ttyOTHERS"])
async def test_a_node_at_no_cable_is_not_updated(port: str) -> None:
    reported = await update_node(port, Lender(has=False).lend)
    assert reported == f"{port}: the node is at no cable of this gateway"


async def test_what_the_command_says_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    lender = Lender()
    reported = await update_node("/dev/ttyNONE", lender.lend)
    assert reported == "/dev/ttyNONE is not there: is the board plugged in?"
    monkeypatch.setattr(nodes, "SECONDS_MAX", 0.01)
    assert await update_node("/dev/ttyNONE", lender.lend) == "not within 0.01 s"
    ports = [("/dev/ttyNONE", seconds) for seconds in (300.0, 0, 0.01, 0)]
    assert lender.lent == ports


@pytest.mark.uncovered
@pytest.mark.micropython
def test_a_client_updates_a_node(tmp_path: Path) -> None:
    micropython = find()
    assert micropython is not None
    board = StandInBoard(tmp_path, micropython)
    settings = {"name": "barn1", "interval_ms": 500}
    before = flash(Port(board.port), Heard(), settings, compiled=False, seconds=20)
    gateway = GatewayProcess(tmp_path, CONFIG.format(port=board.port)).start()
    heard: Queue[paho.MQTTMessage] = Queue()
    client = paho.Client(CallbackAPIVersion.VERSION2)
    client.on_message = lambda _client, _data, message: heard.put(message)
    try:
        client.connect("127.0.0.1", gateway.port)
        client.subscribe("sensors/barn1/#", 1)
        client.loop_start()
        heard.get(timeout=SECONDS)
        client.publish("sensors/barn1/command", b'{"command":"update","id":5}', 1)
        while not (message := heard.get(timeout=SECONDS)).topic.endswith("/answer"):
            pass
        assert json.loads(message.payload) == {"id": 5, "command": "update", "status": "done"}
        heard.get(timeout=SECONDS)  # the gateway has its port again
    finally:
        client.loop_stop()
        gateway.kill()
    after = flash(Port(board.port), Heard(), seconds=20)
    board.close()
    assert (after.changed, after.version != before.version) == (False, True)

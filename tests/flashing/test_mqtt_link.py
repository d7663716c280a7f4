"""A board with Wi-Fi and MicroPython's own MQTT client, on topics of a real gateway."""

import contextlib
import itertools
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import paho.mqtt.client as paho
import pytest
from node.buffer import WINDOW
from node.simulated_sensor import SimulatedSensor
from paho.mqtt.enums import CallbackAPIVersion

from gateway.flashing.board import Board
from gateway.flashing.errors import FlashingError
from gateway.flashing.flash import flash
from gateway.flashing.port import Port
from gateway.flashing.settings import certificate
from tests.flashing.test_flash import Heard
from tests.support.nodes.micropython import CLIENT
from tests.support.nodes.stand_in_board import StandInBoard
from tests.support.ports import free_port
from tests.support.processes.certificates import Authority
from tests.support.processes.gateway_process import GatewayProcess
from tests.support.waiting import until

needs_client = pytest.mark.skipif(
    not CLIENT.exists(), reason="needs umqtt.simple: sh tests/support/get_umqtt.sh"
)
pytestmark = [pytest.mark.micropython, needs_client]

CONFIG = """
[[listener]]
[[listener]]
host = "127.0.0.1"
port = %d
tls_certificate = "%s"
tls_key = "%s"
[[serial]]
port = "topic://nodes/barn1"
"""


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def tls_port() -> int:
    return free_port()


@pytest.fixture
def gateway(tmp_path: Path, authority: Authority, tls_port: int) -> Iterator[GatewayProcess]:
    pair = authority.issue("localhost")
    process = GatewayProcess(tmp_path, CONFIG % (tls_port, pair.certificate, pair.key)).start()
    yield process
    process.kill()


class Subscriber:
    """Keeps what a node says, in a session that outlives the gateway's crashes."""

    def __init__(self, port: int) -> None:
        self.temperatures: dict[bytes, float] = {}
        """By payload: what the gateway sends again after a crash is the same message."""
        self.answers: list[dict[str, str]] = []
        self.client = paho.Client(
            CallbackAPIVersion.VERSION2, client_id="test", clean_session=False
        )
        self.client.on_connect = lambda client, *_: client.subscribe("sensors/barn1/#", 1)
        self.client.on_message = self._take
        self.client.reconnect_delay_set(1, 1)
        self.client.connect("127.0.0.1", port)
        self.client.loop_start()

    def _take(self, _client: paho.Client, _data: object, message: paho.MQTTMessage) -> None:
        if message.topic.endswith("/temperature"):
            self.temperatures[bytes(message.payload)] = json.loads(message.payload)["value"]
        if message.topic.endswith("/answer"):
            self.answers.append(json.loads(message.payload))


def expected() -> Iterator[float]:
    """Give what the simulated sensor measures."""
    sensor = SimulatedSensor(1)
    while True:
        mantissa, exponent = sensor.read()[0][1]
        yield float(f"{mantissa}e{exponent}")


@pytest.mark.uncovered
def test_a_node_with_wifi_loses_nothing_when_the_gateway_is_killed(
    board: StandInBoard, gateway: GatewayProcess, authority: Authority, tls_port: int
) -> None:
    """Its broker proves itself by TLS, which its clock of years ago does not keep from it."""
    broker = {"host": "localhost", "port": tls_port, "ca": certificate(authority.ca_file)}
    wifi = {"ssid": "barn", "password": "hay hay hay"}
    node = {"name": "barn1", "interval_ms": 100, "link": "mqtt"}
    settings = {**node, "wifi": wifi, "broker": broker}
    with pytest.raises(FlashingError, match=r"mip install umqtt\.simple"):
        flash(Port(board.port), Heard(), settings, seconds=20)
    with contextlib.closing(Board.connect(Port(board.port))) as connected:
        connected.write("/lib/umqtt/simple.py", CLIENT.read_bytes())
        assert not connected.read("/clock"), "the time is told when it is flashed"
    subscriber = Subscriber(gateway.port)
    assert flash(Port(board.port), Heard(), settings, seconds=20).reading.node == "barn1"
    until(lambda: len(subscriber.temperatures) > 10, "readings arrive")
    gateway.kill()
    gateway.start()
    until(lambda: len(subscriber.temperatures) > 40, "readings arrive again")
    subscriber.client.publish("sensors/barn1/command", b'{"command":"interval","seconds":1}', 1)
    until(lambda: bool(subscriber.answers), "the node answers")
    assert subscriber.answers[0]["status"] == "done"
    subscriber.client.loop_stop()
    # In any order, since some came late; as many as a window has may still be on their way.
    said = list(subscriber.temperatures.values())
    settled = itertools.islice(expected(), len(said) - WINDOW)
    assert Counter(settled) - Counter(said) == Counter()

import shutil
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.harness import builds
from bench.harness.brokers import Broker, Keeping, tidegate
from bench.harness.errors import MeasurementError
from bench.harness.load import Load
from bench.harness.running import Running

pytestmark = pytest.mark.skipif(
    shutil.which("cc") is None or shutil.which("taskset") is None,
    reason="needs a C compiler and taskset: sudo apt-get install -y gcc util-linux",
)

TRAFFIC = [
    ("--mode", "pair", "--publishers", 3, "--qos", 0),
    ("--mode", "pair", "--qos", 1, "--persistent"),
    ("--mode", "pair", "--qos", 2, "--inflight", 20),
    ("--mode", "fanin", "--publishers", 5, "--qos", 1),
    ("--mode", "pair", "--publishers", 2, "--rate", 5000),
    ("--mode", "pair", "--payload", 65_536, "--window", 10),
    ("--mode", "pair", "--extra-subscriptions", 500),
]


@pytest.fixture(scope="module")
def gateway() -> Iterator[Running]:
    """Give a gateway that is measured."""
    with Running(tidegate("tidegate", builds.ROOT)) as running:
        yield running


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("options", TRAFFIC, ids=lambda options: " ".join(map(str, options)))
def test_a_gateway_delivers_everything_once(
    gateway: Running, version: int, options: tuple[object, ...]
) -> None:
    with Load(gateway, version, *options, "--messages", 300) as load:
        load.ready()
        load.begin()
        report = load.result()
    assert (report["expected"], report["unique"]) == (300, 300)
    assert report["duplicates"] == report["lost"] == report["misrouted"] == 0


def test_each_delivery_of_a_fanout_counts(gateway: Running) -> None:
    options = ("--mode", "fanout", "--subscribers", 7, "--messages", 100)
    with Load(gateway, 4, *options) as load:
        load.ready()
        load.begin()
        assert load.result()["unique"] == 700


@pytest.mark.parametrize("version", [4, 5])
def test_every_client_that_comes_gets_its_message(gateway: Running, version: int) -> None:
    with Load(gateway, version, "--mode", "churn", "--messages", 200, "--parallel", 8) as load:
        load.ready()
        load.begin()
        report = load.result()
    assert (report["cycles"], report["unique"]) == (200, 200)
    assert report["broken"] == report["lost"] == report["duplicates"] == 0


def test_what_is_retained_and_what_waits_is_counted(gateway: Running) -> None:
    with Load(gateway, 5, "--mode", "retained", "--messages", 50) as load:
        for _ in range(2):
            load.ready()
            load.begin()
        assert load.result()["replayed"] == 50
    for mode, name in (("enqueue", "acked"), ("drain", "received")):
        with Load(gateway, 4, "--mode", mode, "--qos", 1, "--messages", 50) as load:
            load.ready()
            load.begin()
            assert load.result()[name] == 50


class Liar:
    """A broker that, of the 100 messages of a publisher, loses the 7th and doubles the 9th."""

    SIZE = 2 + 2 + len("plant/area0/line0/dev0/telemetry") + 64

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with self._listener, self._listener.accept()[0] as subscriber:
            self._answer(subscriber, b"\x20\2\0\0")
            self._answer(subscriber, b"\x90\3\0\1\0")
            with self._listener.accept()[0] as publisher:
                self._answer(publisher, b"\x20\2\0\0")
                sent = b""
                while len(sent) < 100 * self.SIZE:
                    sent += publisher.recv(65_536)
                packets = [sent[at : at + self.SIZE] for at in range(0, len(sent), self.SIZE)]
                subscriber.sendall(b"".join([*packets[:6], *packets[7:9], *packets[8:]]))
                subscriber.recv(1)

    @staticmethod
    def _answer(connection: socket.socket, answer: bytes) -> None:
        connection.recv(4096)
        connection.sendall(answer)


def test_what_is_lost_or_doubled_is_counted(gateway: Running) -> None:
    liar = Liar()
    options = ("--port", liar.port, "--messages", 100, "--stall", 1, "--drain-timeout", 0.2)
    with Load(gateway, 4, *options) as load:
        load.ready()
        load.begin()
        report = load.result()
    assert (report["expected"], report["lost"], report["duplicates"]) == (100, 1, 1)


def test_a_broker_that_ends_at_once_is_an_error() -> None:
    def command(port: int, folder: Path, keeping: Keeping) -> list[str]:
        return ["sh", "-c", f"echo no port {port} >&2; exit 3"]

    with (
        pytest.raises(MeasurementError, match="broken ended with 3: 'no port"),
        Running(Broker("broken", command)),
    ):
        pass

"""Whether the load generator finds what a broker does wrong with the messages of a plan."""

import shutil
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.harness import builds
from bench.harness.brokers import tidegate
from bench.harness.errors import MeasurementError
from bench.harness.load import Load
from bench.harness.running import Running

pytestmark = pytest.mark.skipif(
    shutil.which("cc") is None or shutil.which("taskset") is None,
    reason="needs a C compiler and taskset: sudo apt-get install -y gcc util-linux",
)

PLAN = """\
sample "value":7}
sample "value":12.5,"unit":"C"}
publisher
topic a/b/c/one
topic a/b/c/two
subscriber
filter a/#
"""
MESSAGES = 40


class Broker:
    """Sends the packets of the one publisher to the one subscriber, but changes them first."""

    def __init__(self, change: Callable[[list[bytes]], list[bytes]]) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._change = change
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with self._listener, self._listener.accept()[0] as subscriber:
            subscriber.recv(4096)
            subscriber.sendall(b"\x20\2\0\0")
            subscriber.recv(4096)
            subscriber.sendall(b"\x90\3\0\1\0")
            with self._listener.accept()[0] as publisher:
                publisher.recv(4096)
                publisher.sendall(b"\x20\2\0\0")
                received = b""
                while len(packets := split(received)) < MESSAGES:
                    received += publisher.recv(65_536)
                subscriber.sendall(b"".join(self._change(packets)))
                subscriber.recv(1)


def split(received: bytes) -> list[bytes]:
    """Return the whole packets, each less than 128 bytes."""
    packets = []
    while len(received) >= 2 and len(received) >= 2 + received[1]:
        packets.append(received[: 2 + received[1]])
        received = received[2 + received[1] :]
    return packets


def forget(packets: list[bytes]) -> list[bytes]:
    return packets[:7] + packets[8:]


def double(packets: list[bytes]) -> list[bytes]:
    return [*packets, packets[3]]


def reorder(packets: list[bytes]) -> list[bytes]:
    return [packets[2], packets[0], *packets[1:2], *packets[3:]]  # 0 and 2 have one topic


def interleave(packets: list[bytes]) -> list[bytes]:
    return packets[::2] + packets[1::2]  # the topics apart: in order for each


def rename(packets: list[bytes]) -> list[bytes]:
    return [packets[0].replace(b"c/one", b"c/two"), *packets[1:]]


def alter(packets: list[bytes]) -> list[bytes]:
    return [packets[0].replace(b'"value":', b'"valve":'), *packets[1:]]


def replace(packets: list[bytes]) -> list[bytes]:
    return [packets[0].replace(b'{"p":', b'{"q":'), *packets[1:]]


Fault = Callable[[list[bytes]], list[bytes]]
FAULTS: dict[Fault, dict[str, int]] = {
    forget: {"lost": 1},
    double: {"duplicates": 1},
    reorder: {"reordered": 1},
    interleave: {},
    rename: {"lost": 1, "misrouted": 1},
    alter: {"lost": 1, "misrouted": 1},
    replace: {"lost": 1, "foreign": 1},
}


@pytest.fixture(scope="module")
def gateway() -> Running:
    """Give what a load asks whether it has ended; nothing is sent to it."""
    return Running(tidegate("tidegate", builds.ROOT))


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_what_is_wrong_is_counted(gateway: Running, tmp_path: Path, fault: Fault) -> None:
    plan = tmp_path / "plan"
    plan.write_text(PLAN)
    options = ("--mode", "plan", "--plan", plan, "--messages", MESSAGES, "--drain-timeout", 0.2)
    with Load(gateway, 4, *options, "--port", Broker(fault).port) as load:
        load.ready()
        load.begin()
        report = load.result()
    names = ("lost", "duplicates", "reordered", "misrouted", "foreign")
    assert report["expected"] == MESSAGES
    assert {name: report[name] for name in names} == dict.fromkeys(names, 0) | FAULTS[fault]


@pytest.mark.parametrize(
    ("plan", "error"),
    [
        ("sample x}\nsubscribers\n", "plan: unexpected subscribers"),
        ("publisher\ntopic a\n", "plan: topics and samples are needed"),
        (PLAN + "filter a/b/+/one\n", "plan: two filters match a/b/c/one"),
        (PLAN + "where value > 1\ntakes 2\n", "plan: no sample 2"),
    ],
)
def test_a_plan_that_cannot_be_followed_is_an_error(
    gateway: Running, tmp_path: Path, plan: str, error: str
) -> None:
    file = tmp_path / "plan"
    file.write_text(plan)
    with (
        pytest.raises(MeasurementError, match=error),
        Load(gateway, 4, "--mode", "plan", "--plan", file) as load,
    ):
        load.ready()

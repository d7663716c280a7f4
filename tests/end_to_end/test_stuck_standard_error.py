import os
import pty
import re
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.ports import free_port
from tests.support.processes.gateway_process import COMMAND
from tests.support.waiting import SECONDS, listens, until

CLIENTS = 2_000
"""Two lines of some 70 bytes for each: more than a pipe takes and than may wait."""

CLIENTS_OF_HOST = 50
"""Half of those of a host that have lines of their own in the log."""

CONNECTED = b"\x20\x02\x00\x00"


@pytest.fixture(params=[os.pipe, pty.openpty, socket.socketpair])
def place(request: pytest.FixtureRequest) -> Iterator[tuple[int, int]]:
    """Give what reads standard error, and standard error: a pipe, a terminal, a socket."""
    make: Callable[[], tuple[int | socket.socket, int | socket.socket]] = request.param
    reader, writer = (each if isinstance(each, int) else each.detach() for each in make())
    yield reader, writer
    os.close(reader)


def start(folder: Path, port: int, standard_error: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [str(COMMAND), "run", "--port", str(port), "--data", str(folder / "data")],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=standard_error,
    )


def connect(port: int, number: int) -> None:
    name = b"client-%06d" % number
    body = b"\x00\x04MQTT\x04\x02\x00\x00" + len(name).to_bytes(2, "big") + name
    host = f"127.0.0.{1 + number // CLIENTS_OF_HOST}"
    with socket.create_connection(("127.0.0.1", port), SECONDS, (host, 0)) as client:
        client.sendall(bytes((0x10, len(body))) + body)
        assert client.recv(len(CONNECTED)) == CONNECTED


def test_a_reader_that_reads_nothing_stops_nobody(tmp_path: Path, place: tuple[int, int]) -> None:
    reader, writer = place
    port = free_port()
    gateway = start(tmp_path, port, writer)
    os.close(writer)
    try:
        until(lambda: listens(port), "the gateway listens")
        for number in range(CLIENTS):
            connect(port, number)
        text = ""
        while "lines dropped here" not in text:
            text += os.read(reader, 65_536).decode()
        connect(port, CLIENTS)
        while not re.search(rf"client-{CLIENTS:06}'.* ended after ", text):
            text += os.read(reader, 65_536).decode()
    finally:
        gateway.send_signal(signal.SIGTERM)
        assert gateway.wait(SECONDS) == 0
    lines = text.splitlines()
    reported = [int(each.split()[-1]) for each in lines if "lines dropped here" in each]
    shown = [each for each in lines if " connected from " in each or " ended after " in each]
    assert len(shown) + sum(reported) == 2 * (CLIENTS + 1)
    assert "client-000000" in text


def test_the_end_does_not_wait_for_a_reader(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    for size in (4_096, 1):
        try:
            while os.write(writer, b"x" * size):
                pass
        except BlockingIOError:
            continue
    os.set_blocking(writer, True)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        gateway = start(tmp_path, taken.getsockname()[1], writer)
        assert gateway.wait(SECONDS) == 2  # it cannot start, and cannot say so
    os.close(reader)
    os.close(writer)

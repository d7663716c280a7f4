import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.telemetry.systemd_notify import SystemdNotify
from tests.support.disk.storage import until
from tests.support.processes.gateway_process import GatewayProcess
from tests.support.waiting import SECONDS


class Systemd:
    """A socket like the one on which systemd listens to its services."""

    def __init__(self, address: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(address)
        self._socket.settimeout(SECONDS)

    def next(self) -> str:
        return self._socket.recv(4_096).decode()

    def all(self) -> list[str]:
        """Return what is there, without waiting for more."""
        self._socket.setblocking(False)
        received = []
        try:
            while True:
                received.append(self.next())
        except BlockingIOError:
            return received

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(autouse=True)
def _no_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    monkeypatch.delenv("WATCHDOG_USEC", raising=False)


@pytest.fixture(params=["path", "abstract"])
def systemd(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Systemd]:
    """Give the other end of NOTIFY_SOCKET, a file or a name in the abstract namespace."""
    if request.param == "path":
        address = str(tmp_path / "notify")
        monkeypatch.setenv("NOTIFY_SOCKET", address)
    else:
        name = f"tidegate-test-{os.getpid()}-{id(tmp_path)}"
        monkeypatch.setenv("NOTIFY_SOCKET", f"@{name}")
        address = f"\0{name}"
    opened = Systemd(address)
    yield opened
    opened.close()


def test_ready_and_stopping(systemd: Systemd) -> None:
    notify = SystemdNotify()
    notify.ready("gateway barn listens on 127.0.0.1:1883")
    assert systemd.next() == "READY=1\nSTATUS=gateway barn listens on 127.0.0.1:1883"
    notify.stopping()
    assert systemd.next() == "STOPPING=1"
    assert not systemd.all()


async def test_the_watchdog_is_told_at_least_twice_in_its_interval(
    systemd: Systemd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", "40000")
    notify = SystemdNotify()
    notify.ready("up")
    received: list[str] = []

    def told_three_times() -> bool:
        received.extend(systemd.all())
        return received.count("WATCHDOG=1") >= 3

    await until(told_three_times)
    notify.stopping()
    assert received[0].startswith("READY=1")
    await until(lambda: systemd.all()[-1:] == ["STOPPING=1"])


def test_without_systemd_nothing_is_sent() -> None:
    notify = SystemdNotify()
    notify.ready("up")
    notify.stopping()


def test_a_socket_that_is_gone_is_no_reason_to_stop(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "none"))
    SystemdNotify().ready("up")
    assert caplog.messages[0].startswith(f"cannot notify systemd at {tmp_path / 'none'}: ")


def test_a_gateway_as_a_service(tmp_path: Path) -> None:
    systemd = Systemd(str(tmp_path / "notify"))
    gateway = GatewayProcess(tmp_path, "gateway.id = 'barn'\n")
    gateway.start({"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "200000"})
    status = f"STATUS=gateway barn listens on 127.0.0.1:{gateway.port}"
    assert systemd.next() == f"READY=1\n{status}"
    assert systemd.next() == "WATCHDOG=1"
    assert systemd.next() == "WATCHDOG=1"
    assert gateway.process is not None
    before = time.monotonic_ns() // 1000
    gateway.process.send_signal(signal.SIGHUP)
    while (reported := systemd.next()) == "WATCHDOG=1":
        pass
    word, clock = reported.splitlines()
    assert word == "RELOADING=1"
    assert before <= int(clock.removeprefix("MONOTONIC_USEC=")) <= time.monotonic_ns() // 1000
    while (reported := systemd.next()) == "WATCHDOG=1":
        pass
    assert reported == f"READY=1\n{status}"
    assert gateway.stop(signal.SIGTERM) == 0
    assert systemd.all()[-1] == "STOPPING=1"
    systemd.close()


def test_a_systemd_that_reads_nothing_stops_nobody(
    systemd: Systemd, caplog: pytest.LogCaptureFixture
) -> None:
    notify = SystemdNotify()
    while not caplog.records:  # its queue is full
        notify.ready("here")
    assert "cannot notify systemd" in caplog.text
    assert systemd.all()
    caplog.clear()
    notify.stopping()
    assert systemd.all() == ["STOPPING=1"]
    assert not caplog.records

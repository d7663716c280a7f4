import dataclasses
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.cli.run import _invite
from gateway.config.configuration import Configuration
from gateway.settings.listener import ListenerSettings
from tests.support.ports import free_port
from tests.support.processes.gateway_process import COMMAND
from tests.support.waiting import SECONDS

COMMANDS = ["subscribe 'sensors/#'", "tui", "uplink pause"]


@pytest.mark.uncovered
def test_on_a_terminal_three_commands_are_told(tmp_path: Path) -> None:
    port = free_port()
    here, there = pty.openpty()
    process = subprocess.Popen(
        [str(COMMAND), "run", "--port", str(port)],
        cwd=tmp_path,
        stdin=there,
        stdout=there,
        stderr=subprocess.DEVNULL,
    )
    os.close(there)
    text = ""
    while "Ctrl-C stops it." not in text:
        text += os.read(here, 4_096).decode()
    process.send_signal(signal.SIGINT)
    assert process.wait(SECONDS) == 0
    os.close(here)
    url = f"mqtt://127.0.0.1:{port}"
    output = [line.strip() for line in text.splitlines() if line.startswith("  ")]
    assert output == [f"{COMMAND} {command} {url}" for command in COMMANDS]


@pytest.mark.parametrize(
    ("host", "port", "url"),
    [
        ("127.0.0.1", 1883, ""),
        ("127.0.0.1", 1884, " mqtt://127.0.0.1:1884"),
        ("0.0.0.0", 1883, ""),
        ("::", 1883, " mqtt://[::1]:1883"),
        ("192.168.1.5", 1883, " mqtt://192.168.1.5:1883"),
        ("fe80::1", 8883, " mqtt://[fe80::1]:8883"),
    ],
)
def test_the_address_is_one_that_this_machine_reaches(
    host: str,
    port: int,
    url: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "argv", ["tidegate"])
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    _invite(Configuration("file", "id", listeners=(ListenerSettings(host, port),)))
    lines = [line.strip() for line in capsys.readouterr().out.splitlines() if line[:2] == "  "]
    assert lines == [f"tidegate {command}{url}" for command in COMMANDS]


TLS = ListenerSettings("0.0.0.0", 8883, tls_certificate="c.pem")


@pytest.mark.parametrize(
    ("listeners", "url"),
    [
        (
            [ListenerSettings(path="/run/socket"), ListenerSettings(port=1884)],
            "mqtt://127.0.0.1:1884",
        ),
        ([ListenerSettings(websocket=True), TLS], "mqtts://127.0.0.1:8883"),
        ([dataclasses.replace(TLS, client_ca="ca.pem"), TLS], "mqtts://127.0.0.1:8883"),
    ],
)
def test_the_first_address_is_told_at_which_the_commands_can_speak(
    listeners: list[ListenerSettings],
    url: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    _invite(Configuration("file", "id", listeners=tuple(listeners)))
    assert f"tui {url}\n" in capsys.readouterr().out


def test_without_one_no_commands_are_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    _invite(Configuration("file", "id", listeners=(ListenerSettings(path="/run/socket"),)))
    assert capsys.readouterr().out == "\nTidegate is running.\n\nCtrl-C stops it.\n\n"


def test_elsewhere_nothing_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    _invite(Configuration("file", "id"))
    assert not capsys.readouterr().out


@pytest.mark.uncovered
def test_nothing_is_told_where_there_is_no_standard_output(tmp_path: Path) -> None:
    port = free_port()
    process = subprocess.Popen(
        ["/bin/sh", "-c", 'exec "$0" "$@" >&-', str(COMMAND), "run", "--port", str(port)],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    assert "listens on" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    assert process.wait(SECONDS) == 0
    process.stderr.close()

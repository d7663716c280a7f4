"""The command as a person starts it: on a pseudo-terminal, against a real gateway."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from paho.mqtt.publish import single

from tests.support.ports import free_port
from tests.support.waiting import SECONDS, listens, until
from tests.tui.emulator import Screen, show, text_of
from tui.app import run

TIDEGATE = [sys.executable, "-c", "import gateway.cli.main as cli; raise SystemExit(cli.main())"]


class Terminal:
    """A command on a pseudo-terminal of 100 by 30 cells."""

    def __init__(self, command: list[str]) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        state = tempfile.mkdtemp()
        environment = os.environ | {"TERM": "xterm-256color", "XDG_STATE_HOME": state}
        self.process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment
        )
        os.close(theirs)
        self._output = b""

    def read_until(self, text: str) -> None:
        """Read until this text is on the screen."""
        end = time.monotonic() + SECONDS
        while text not in self._screen():
            left = end - time.monotonic()
            assert left > 0, f"{text!r} not in\n{self._screen()}"
            if select.select([self._ours], [], [], left)[0]:
                self._output += os.read(self._ours, 65_536)

    def _screen(self) -> str:
        screen: Screen = {}
        show(self._output.decode(errors="ignore"), screen)
        return text_of(screen)

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._ours, keys.encode())

    def end(self) -> int:
        """Read on until the command ends and return its exit status."""
        with suppress(OSError):  # it has closed the terminal
            while select.select([self._ours], [], [], SECONDS)[0] and os.read(self._ours, 65_536):
                continue
        return self.process.wait(SECONDS)

    def close(self) -> None:
        """End the command if need be and give the terminal back."""
        self.process.kill()
        self.process.wait()
        os.close(self._ours)


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[int]:
    """The port of a running gateway with an uplink to a directory."""
    port = free_port()
    configuration = tmp_path / "gateway.toml"
    configuration.write_text(
        '[gateway]\nid = "barn"\n'
        f'[[listener]]\nhost = "127.0.0.1"\nport = {port}\n'
        "[broker]\nsys_interval = 1\n"
        f'[uplink]\ndirectory = "{tmp_path / "landing"}"\n'
    )
    data = str(tmp_path / "data")
    arguments = ["run", "--config", str(configuration), "--data", data]
    process = subprocess.Popen(
        [*TIDEGATE, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        until(lambda: listens(port), "the gateway listens")
        yield port
    finally:
        process.terminate()
        process.wait(SECONDS)


@pytest.fixture
def terminal(gateway: int) -> Iterator[Terminal]:
    opened = Terminal([*TIDEGATE, "tui", f"mqtt://127.0.0.1:{gateway}"])
    yield opened
    opened.close()


def test_a_session_with_a_real_gateway(gateway: int, terminal: Terminal) -> None:
    terminal.read_until("barn")
    terminal.read_until("uplink")
    single(
        "sensors/n1/temperature", '{"value":21.5,"unit":"°C"}', hostname="127.0.0.1", port=gateway
    )
    terminal.read_until("n1/temperature")
    terminal.read_until("21.5")
    terminal.type("4")
    terminal.read_until("pause the uplink")
    terminal.type("p")
    terminal.read_until("Pause the uplink?")
    terminal.type("y")
    terminal.read_until("the uplink is paused")
    terminal.type("q")
    assert terminal.end() == 0


def test_a_terminal_that_has_ended_ends_the_command(gateway: int) -> None:
    """Also where nobody tells it by a signal, as under nohup."""
    hangup = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        opened = Terminal([*TIDEGATE, "tui", f"mqtt://127.0.0.1:{gateway}"])
    finally:
        signal.signal(signal.SIGHUP, hangup)
    opened.read_until("barn")
    os.close(opened._ours)
    assert opened.process.wait(SECONDS) != 0


@pytest.mark.parametrize("url", ["localhost:1883", "http://127.0.0.1", "mqtt://u:secret@h:x"])
def test_a_url_that_cannot_be_used(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(url) == 2
    told = capsys.readouterr().err
    assert told.startswith("tidegate tui: URL ")
    assert told.count("\n") == 1
    assert "secret" not in told


def test_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("mqtt://127.0.0.1:1") == 2
    assert capsys.readouterr().err == (
        "tidegate tui: standard input and error must be a terminal\n"
    )


def test_recordings_that_cannot_be_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text, problem in (
        ("empty", "", "it is empty"),
        ("odd", "[1]\n", "line 1 is no line of one"),
        ("binary", "\x00", "line 1 is no line of one"),
    ):
        (tmp_path / name).write_text(text)
        assert run(replay=tmp_path / name) == 2
        assert problem in capsys.readouterr().err
    assert run(replay=tmp_path / "nothing") == 2
    assert "No such file" in capsys.readouterr().err
    assert run(record=tmp_path / "no" / "folder") == 2
    assert "No such file" in capsys.readouterr().err

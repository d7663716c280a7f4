"""An outage as a person sees it: keys in tmux, a gateway, a fleet that is killed and comes back."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from paho.mqtt.publish import single

from tests.support.processes.gateway_process import GatewayProcess
from tests.support.processes.mosquitto import Mosquitto
from tests.support.waiting import until

TMUX = shutil.which("tmux")

pytestmark = [
    pytest.mark.mosquitto,
    pytest.mark.uncovered,
    pytest.mark.skipif(TMUX is None, reason="no tmux in PATH: apt-get install tmux"),
]

CONFIG = """
[gateway]
id = "barn"
[broker]
remembered_topics = 100
sys_interval = 1
[[channel]]
name = "jobs"
filter = "work/#"
[[uplink]]
name = "plant"
url = "mqtt://127.0.0.1:{port}"
[[uplink.rule]]
topic = "sensors/#"
[[uplink]]
name = "cloud"
directory = "{folder}/landing"
[[uplink.rule]]
topic = "orders/#"
"""


class Tmux:
    """A window of tmux with a command in it."""

    def __init__(self, folder: Path, command: list[str], columns: int, lines: int) -> None:
        self._socket = str(folder / "tmux")
        environment = (
            "env",
            "-u",
            "COLUMNS",
            "-u",
            "LINES",
            f"XDG_STATE_HOME={folder}",
            "TERM=screen-256color",
        )
        shown = shlex.join([*environment, *command])
        size = ("-x", str(columns), "-y", str(lines))
        self.run("-f", "/dev/null", "new-session", "-d", *size, shown)

    def run(self, *words: str) -> str:
        """Give tmux a command; return what it writes."""
        command = [str(TMUX), "-S", self._socket, *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    @property
    def ended(self) -> bool:
        """Whether the command in it has ended, and with it tmux."""
        command = [str(TMUX), "-S", self._socket, "list-sessions"]
        return subprocess.run(command, check=False, capture_output=True).returncode != 0

    def end(self) -> None:
        """End it if it runs."""
        if not self.ended:
            self.run("kill-server")

    def text(self) -> str:
        """Return what the window shows."""
        return self.run("capture-pane", "-p")

    def press(self, *keys: str) -> None:
        """Press keys, by their names in tmux."""
        self.run("send-keys", *keys)

    def resize(self, columns: int, lines: int) -> None:
        """Give the window another size."""
        self.run("resize-window", "-x", str(columns), "-y", str(lines))

    def shows(self, *texts: str) -> str:
        """Wait until all of these are shown; return the whole text."""

        def shown() -> bool:
            text = self.text()
            return all(each in text for each in texts)

        until(shown, str(texts), self.text)
        return self.text()


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Mosquitto]:
    (tmp_path / "fleet").mkdir()
    broker = Mosquitto(tmp_path / "fleet")
    broker.start()
    yield broker
    broker.kill()


@pytest.fixture
def barn(tmp_path: Path, fleet: Mosquitto) -> Iterator[GatewayProcess]:
    made = GatewayProcess(tmp_path, CONFIG.format(port=fleet.port, folder=tmp_path))
    made.start()
    yield made
    made.kill()


@pytest.fixture
def window(tmp_path: Path, barn: GatewayProcess) -> Iterator[Tmux]:
    tidegate = str(Path(sys.executable).with_name("tidegate"))
    opened = Tmux(tmp_path, [tidegate, "tui", f"mqtt://127.0.0.1:{barn.port}"], 80, 24)
    yield opened
    opened.end()


def test_an_outage_and_its_end(window: Tmux, barn: GatewayProcess, fleet: Mosquitto) -> None:
    def publish(number: int) -> None:
        reading = json.dumps({"value": number, "unit": "°C"})
        single("sensors/boiler/temperature", reading, 1, hostname="127.0.0.1", port=barn.port)

    publish(21)
    window.shows("barn ● up", "nothing needs you", "plant", "boiler/temperature", "21 °C")

    fleet.kill()
    for number in range(22, 30):
        publish(number)
    window.shows("1 thing needs you", "✕ plant", "8 wait, nothing lost")
    window.press("Enter")
    window.shows("[4 Queues", "▌ plant", "disconnected", "refused")
    window.resize(40, 12)
    window.shows("plant")
    window.resize(160, 50)
    window.shows("waiting for the fleet", "capacity")
    window.resize(80, 24)

    window.press("p")
    window.shows("Pause uplink plant?", "The pause outlives restarts.")
    window.press("n")
    window.press("1")
    window.shows("[1 Now", "1 thing needs you")
    fleet.start()

    def all_well() -> bool:
        publish(29)  # on a busy machine the topic has been silent for a minute, or is so again
        time.sleep(0.5)
        return all(text in window.text() for text in ("nothing needs you", "● plant"))

    until(all_well, "nothing needs anybody", window.text)
    window.press("6")
    window.shows("uplink plant")

    window.press("2", "/")
    window.press("-l", "boiler")
    window.press("Enter")
    window.shows("boiler", "29 °C")
    window.press(":")
    window.press("-l", "clients")
    window.press("Enter")
    window.shows("[3 Clients", "● you")
    window.press("?")
    window.shows("keys and signs", "disconnect…")

    assert barn.process is not None
    os.kill(barn.process.pid, signal.SIGSTOP)
    window.shows("NO ANSWER for", "the gateway or the network stands still")
    os.kill(barn.process.pid, signal.SIGCONT)
    window.press("Escape")
    window.shows("barn ● up", "● you")
    barn.kill()
    window.shows("NO CONNECTION", "attempt")
    window.press("q")
    until(lambda: window.ended, "the command ends")

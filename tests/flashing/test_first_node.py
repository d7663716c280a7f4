"""Every command of docs/start/first-node.md on the stand-in board; its pictures are as drawn."""

import contextlib
import json
import os
import pty
import queue
import re
import select
import shlex
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from gateway.flashing.hardware import SENSORS
from gateway.flashing.settings import read_settings
from tests.flashing.test_images import RP2040, uf2
from tests.support.nodes.micropython import ROOT
from tests.support.nodes.stand_in_board import StandInBoard
from tests.support.ports import free_port
from tests.support.processes.gateway_process import COMMAND
from tools.wiring import WIRINGS, picture

PAGE = (ROOT / "docs/start/first-node.md").read_text(encoding="utf-8")
ORDER = re.compile(r"`(mosquitto_pub [^`]+)`")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SECONDS = 60


def blocks(language: str) -> list[str]:
    return [text for name, text in BLOCK.findall(PAGE) if name == language]


class Reader:
    """Somebody who follows the page, in a folder of their own."""

    def __init__(self, folder: Path, board: StandInBoard) -> None:
        self.folder = folder
        self.url = f"mqtt://127.0.0.1:{free_port()}"
        self._board = board

    def here(self, text: str) -> str:
        """Return the text with this board, drive and broker."""
        drive = str(self.folder / "RPI-RP2")
        text = text.replace("/dev/ttyACM0", self._board.port)
        text = text.replace("/media/pi/RPI-RP2", drive)
        return text.replace("1883", self.url.rpartition(":")[2])

    def words(self, command: str) -> list[str]:
        words = shlex.split(self.here(command))
        assert words[0] == "tidegate"
        if words[1] == "tui":
            words.append(self.url)
        return [str(COMMAND), *words[1:]]

    def run(self, command: str) -> str:
        done = subprocess.run(
            self.words(command),
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def order(self, command: str) -> dict[str, str]:
        """Publish as `mosquitto_pub` does; return what the node answers."""
        words = shlex.split(command)
        topic, payload = words[words.index("-t") + 1], words[words.index("-m") + 1]
        heard: queue.Queue[bytes] = queue.Queue()
        client = paho.Client(CallbackAPIVersion.VERSION2)

        def subscribe(*_: object) -> None:
            client.subscribe(f"{topic}/answer")

        def publish(*_: object) -> None:
            client.publish(topic, payload)

        client.on_connect, client.on_subscribe = subscribe, publish
        client.on_message = lambda _client, _data, message: heard.put(bytes(message.payload))
        client.connect("127.0.0.1", int(self.url.rpartition(":")[2]))
        client.loop_start()
        answer: dict[str, str] = json.loads(heard.get(timeout=SECONDS))
        client.disconnect()
        client.loop_stop()
        return answer

    @contextlib.contextmanager
    def gateway(self, command: str) -> Iterator[None]:
        with subprocess.Popen(
            self.words(command), cwd=self.folder, stdout=subprocess.DEVNULL
        ) as process:
            try:
                yield
            finally:
                process.terminate()

    def screen(self, command: str, *steps: tuple[bytes, bytes]) -> None:
        """Run the command on a terminal; once it shows a step's text, press the step's keys."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.environ.update(TERM="xterm-256color", COLUMNS="120", LINES="40")
            os.execv(COMMAND, self.words(command))
        end = time.monotonic() + SECONDS
        with os.fdopen(terminal, "wb+", buffering=0) as file:
            for wanted, keys in steps:
                shown = b""
                while wanted not in shown:
                    assert time.monotonic() < end, f"no {wanted!r} in {shown!r}"
                    if select.select([file], [], [], 1)[0]:
                        shown += os.read(terminal, 65_536)
                os.write(terminal, keys)
            os.kill(pid, 15)
            os.waitpid(pid, 0)


@pytest.mark.uncovered
@pytest.mark.slow
@pytest.mark.micropython
def test_the_page_leads_to_a_plot(board: StandInBoard, tmp_path: Path) -> None:
    reader = Reader(tmp_path, board)
    (tmp_path / "RPI-RP2").mkdir()
    (tmp_path / "RPI-RP2" / "INFO_UF2.TXT").write_text("Board-ID: RPI-RP2\n")
    (tmp_path / "RPI_PICO.uf2").write_bytes(uf2(RP2040, RP2040))
    gateway_file, line = blocks("toml")
    (wifi,) = (text for text in blocks("text") if "[wifi]" in text)
    (tmp_path / "gateway.toml").write_text(reader.here(gateway_file))
    (tmp_path / "line.toml").write_text(line)
    reader.run("tidegate check line.toml")
    sensor = '[[sensor]]\ndriver = "simulated"\n'
    (tmp_path / "wifi.toml").write_text(f'board = "pico_w"\nname = "barn1"\n{wifi}{sensor}')
    assert read_settings(tmp_path / "wifi.toml").link == "mqtt"
    commands = [each for text in blocks("sh") for each in text.splitlines()]
    new, flash, ports, monitor, check, run, tui, update = commands
    assert "node.toml" in reader.run(new)
    settings = (tmp_path / "node.toml").read_text()
    assert "\ninterval = 10\n" in settings
    (tmp_path / "node.toml").write_text(settings.replace("interval = 10", "interval = 1"))
    expected = "temperature 25.08 °C, humidity 55.0 %, pressure 1006.53 hPa"
    assert expected in PAGE
    assert expected in reader.run(flash)
    assert (tmp_path / "RPI-RP2" / "RPI_PICO.uf2").exists()
    assert "node barn1, sending" in reader.run(ports)
    assert re.match(rf"barn1 \d+:  {re.escape(expected)}\n", reader.run(monitor))
    reader.run(check)
    with reader.gateway(run):
        # Below sensors, barn1, humidity and pressure is the temperature; its page has the plot.
        down = b"\x1b[B" * 4
        steps = (
            (b"barn1/pressure", b"2"),
            (b"temperature", down + b"\r"),
            (b"sensors/barn1/temp", b""),
        )
        reader.screen(tui, *steps)
        assert "1 of 1 nodes have this version" in reader.run(update)
        assert reader.order(*ORDER.findall(PAGE)) == {"command": "update", "status": "done"}


def test_each_sensor_has_its_picture() -> None:
    assert set(WIRINGS) == set(SENSORS)
    for name, wiring in WIRINGS.items():
        drawn = (ROOT / "docs/pictures/wiring" / f"{name}.svg").read_text(encoding="utf-8")
        assert drawn == picture(wiring), f"python tools/wiring.py draws {name} anew"
        assert f"(../pictures/wiring/{name}.svg)" in PAGE

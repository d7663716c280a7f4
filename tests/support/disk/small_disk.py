"""A file system of a few megabytes, mounted for a test; and what a gateway says under $SYS."""

import subprocess
import threading
from pathlib import Path
from typing import Any

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

from tests.support.waiting import SECONDS, until

ROOT = "$SYS/broker/tidegate/"


class SmallDisk:
    """A tmpfs on `folder`, which is made."""

    def __init__(self, folder: Path, megabytes: int) -> None:
        self.folder = folder
        self._size = f"size={megabytes}m"

    def mount(self) -> None:
        """Mount it."""
        self.folder.mkdir(exist_ok=True)
        _run("mount", "-t", "tmpfs", "-o", self._size, "tmpfs", str(self.folder))

    def remount(self, mode: str) -> None:
        """Make it `ro` or `rw`."""
        _run("mount", "-o", f"remount,{mode},{self._size}", str(self.folder))

    def resize(self, kilobytes: int) -> None:
        """Make it larger, or smaller as far as it is empty."""
        self._size = f"size={kilobytes}k"
        self.remount("rw")

    def unmount(self) -> None:
        """Take it away with all that is in it."""
        _run("umount", "-l", str(self.folder))

    @property
    def filler(self) -> Path:
        """The file that takes the room."""
        return self.folder / "filler"

    def fill(self) -> None:
        """Leave no byte to anybody else."""
        with self.filler.open("ab", buffering=0) as file:
            for size in (1 << 20, 4096, 1):
                try:
                    while True:
                        file.write(bytes(size))
                except OSError:
                    continue

    def empty(self) -> None:
        """Give the room back that `fill` took."""
        self.filler.unlink()


class SysFigures:
    """What a gateway says under `$SYS/broker/tidegate/`, as of now."""

    def __init__(self, port: int) -> None:
        self._values: dict[str, str] = {}
        connected = threading.Event()
        version = MQTTProtocolVersion.MQTTv5
        self._client = paho.Client(CallbackAPIVersion.VERSION2, protocol=version)
        self._client.on_connect = lambda *_: connected.set()
        self._client.on_message = self._on_message
        self._client.connect("127.0.0.1", port)
        self._client.loop_start()
        assert connected.wait(SECONDS), "no CONNACK"
        self._client.subscribe(ROOT + "#")

    def get(self, name: str) -> str:
        """Return the last value of a figure, empty before the first."""
        return self._values.get(name, "")

    def until(self, name: str, value: str) -> None:
        """Return when the figure contains `value`, or is empty where that is."""
        until(lambda: value in self.get(name) if value else not self.get(name), f"{name}: {value}")

    def close(self) -> None:
        """Disconnect and end the thread."""
        self._client.disconnect()
        self._client.loop_stop()

    def _on_message(self, _client: Any, _data: Any, message: paho.MQTTMessage) -> None:
        self._values[message.topic.removeprefix(ROOT)] = message.payload.decode()


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)

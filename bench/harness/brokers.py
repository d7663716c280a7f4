"""The brokers that are compared: how each one is started."""

import shlex
import shutil
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from pathlib import Path

from bench.harness.errors import MeasurementError


class Keeping(Enum):
    """What a broker keeps over its end."""

    STOCK = auto()  # what it does unless told
    UNBOUNDED = auto()  # the same, with no bound on a queue
    DURABLE = auto()  # everything that it can by configuration, with no bound on a queue
    MEMORY = auto()  # nothing that it acknowledges need be on disk before


_START = """\
import sys
sys.meta_path = [finder for finder in sys.meta_path if "editable" not in str(finder)]
from gateway.cli.main import main
raise SystemExit(main())
"""
"""Without the finder of an editable install, which knows the library of another checkout."""

Command = Callable[[int, Path, Keeping], list[str]]
"""Port, data folder that outlives restarts, what to keep: the words of the command."""


@dataclass(frozen=True)
class Broker:
    """A broker under the name that the tables give it."""

    name: str
    command: Command
    environment: dict[str, str] = field(default_factory=dict)
    own: bool = False
    """Whether it is Tidegate."""

    only_copies: bool = False
    """Whether it is the generator's byte copier, which is no broker."""

    end: signal.Signals = signal.SIGKILL
    """How it is ended when all is measured; a profiler needs time to write."""


def mosquitto_program() -> str:
    """Return Mosquitto's path."""
    for place in ("mosquitto", "/usr/sbin/mosquitto"):
        if found := shutil.which(place):
            return found
    raise MeasurementError("Mosquitto is missing: sudo apt-get install -y mosquitto")


def _mosquitto_command(port: int, folder: Path, keeping: Keeping) -> list[str]:
    lines = [f"listener {port} 127.0.0.1", "allow_anonymous true", "user root"]
    if keeping in (Keeping.UNBOUNDED, Keeping.DURABLE):
        lines += ["max_queued_messages 0"]
    if keeping is Keeping.DURABLE:
        lines += ["persistence true", f"persistence_location {folder}/"]
    file = folder / "mosquitto.conf"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return [mosquitto_program(), "-c", str(file)]


def mosquitto() -> Broker:
    """Return Debian's Mosquitto with stock settings, to which ratios refer."""
    mosquitto_program()
    return Broker("mosquitto", _mosquitto_command)


def tidegate(name: str, folder_of_package: Path) -> Broker:
    """Return the gateway whose package `gateway` lies in this folder."""

    def command(port: int, folder: Path, keeping: Keeping) -> list[str]:
        words = [sys.executable, "-c", _START, "run", "--port", str(port), "--data", str(folder)]
        return words + ["--durability", "memory"] * (keeping is Keeping.MEMORY)

    return Broker(name, command, {"PYTHONPATH": str(folder_of_package)}, own=True)


def configured(broker: Broker, text: str) -> Broker:
    """Return the gateway with this configuration."""

    def command(port: int, folder: Path, keeping: Keeping) -> list[str]:
        file = folder / "gateway.toml"
        file.write_text(text, encoding="utf-8")
        return [*broker.command(port, folder, keeping), "--config", str(file)]

    return replace(broker, command=command)


def custom(name: str, line: str) -> Broker:
    """Return the broker that a command line starts, with {port} and {dir} in it."""

    def command(port: int, folder: Path, _: Keeping) -> list[str]:
        return shlex.split(line.replace("{port}", str(port)).replace("{dir}", str(folder)))

    return Broker(name, command)


def byte_copier(generator: Path) -> Broker:
    """Return the ceiling: what the kernel alone costs when bytes are copied unread."""

    def command(port: int, _: Path, __: Keeping) -> list[str]:
        return [str(generator), "--mode", "serve-echo", "--port", str(port)]

    return Broker("copier", command, only_copies=True)

"""A real Mosquitto on a free port of 127.0.0.1, which can be killed and started again."""

import signal
import subprocess
from pathlib import Path

from tests.support.ports import free_port
from tests.support.requirements import find_program
from tests.support.waiting import SECONDS, listens, until

CONFIG = """\
listener {port} 127.0.0.1
allow_anonymous true
user root
persistence true
persistence_location {folder}/
max_queued_messages 0
max_inflight_messages 0
log_dest file {folder}/log
"""


def mosquitto_program() -> str:
    """Return the broker's path; a test that is not marked with what it needs fails without it."""
    program = find_program("mosquitto")
    assert program is not None, "the test lacks pytest.mark.mosquitto"
    return program


class Mosquitto:
    """One broker with its sessions in `folder`; `extra` are more lines of configuration."""

    def __init__(self, folder: Path, extra: str = "") -> None:
        self.port = free_port()
        self._folder = folder / "mosquitto"
        self._folder.mkdir()
        self._config = self._folder / "mosquitto.conf"
        self._config.write_text(CONFIG.format(port=self.port, folder=self._folder) + extra)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and return when it takes connections."""
        self._process = subprocess.Popen([mosquitto_program(), "-c", str(self._config)])
        until(lambda: listens(self.port), "Mosquitto listens")

    def save(self) -> None:
        """Have it write its sessions to disk, from where a killed one starts again."""
        database = self._folder / "mosquitto.db"
        database.unlink(missing_ok=True)
        self._signal(signal.SIGUSR1)
        until(database.exists, "Mosquitto has saved its sessions")

    def kill(self) -> None:
        """End it as a power cut would."""
        if self._process is not None:
            self._signal(signal.SIGKILL)
            self._process.wait(SECONDS)
            self._process = None

    def freeze(self) -> None:
        """Stop it without closing anything: the network is there and nobody answers."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None, "not started"
        self._process.send_signal(number)

"""A gateway of the crash test's own, in a process that can be killed and started again."""

import asyncio
import contextlib
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from random import SystemRandom

from crashtest.client import HOST, PATIENCE

COMMAND = "import sys; from gateway.cli.main import main; sys.exit(main())"

PORTS = (10_000, 32_768)
"""From the first on, below the second."""

POLL = 0.01
"""Seconds between two looks whether it listens."""

CONFIGURATION = """\
[gateway]
id = "crashtest"
[[listener]]
host = "127.0.0.1"
port = {port}
[uplink]
directory = "{landing}"
[[uplink.rule]]
topic = "crash/#"
[[durability]]
topic = "crash/batched/#"
class = "batch(50)"
"""


class EndedError(Exception):
    """The gateway's process ended by itself; the text is the end of its log."""


class GatewayProcess:
    """`tidegate run` with its data in `<folder>/data`, its log in `<folder>/log`.

    `arguments` are more of its arguments, `wrapper` words before the command, such as those of a
    tracer that leaves the gateway its parent's child.
    """

    def __init__(
        self,
        folder: Path,
        configuration: str = CONFIGURATION,
        *,
        arguments: Sequence[str] = (),
        wrapper: Sequence[str] = (),
        port: int | None = None,
    ) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.landing = folder / "landing"
        self.port = free_port() if port is None else port
        self.arguments = arguments
        self.wrapper = wrapper
        self.process: subprocess.Popen[bytes] | None = None
        self._log = folder / "log"
        self._configuration = folder / "gateway.toml"
        self._configuration.write_text(
            configuration.format(port=self.port, landing=self.landing), encoding="utf-8"
        )

    def spawn(self) -> None:
        """Start it and return at once."""
        command = [sys.executable, "-P", "-c", COMMAND, "run", *self.arguments]
        command += ["--config", str(self._configuration), "--data", str(self.data)]
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(  # noqa: S603 - our own command
                [*self.wrapper, *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    async def start(self) -> None:
        """Start it and return when it takes connections; raise EndedError if it does not."""
        self.spawn()
        async with asyncio.timeout(PATIENCE):
            while not self._listens():
                self.check()
                await asyncio.sleep(POLL)

    def check(self) -> None:
        """Raise EndedError if it has ended by itself."""
        if self.process is not None and self.process.poll() is not None:
            raise EndedError(f"exit status {self.process.returncode}: {self.log()[-1000:]}")

    def kill(self) -> None:
        """End it with SIGKILL and return when it is gone; nothing if it does not run."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(PATIENCE)
            self.process = None

    def stop(self) -> int:
        """Ask it to end, and return its exit status."""
        if self.process is None:
            raise ValueError("the gateway does not run")
        self.process.terminate()
        status = self.process.wait(PATIENCE)
        self.process = None
        return status

    def log(self) -> str:
        """Return what it has logged, over all its starts."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def _listens(self) -> bool:
        try:
            socket.create_connection((HOST, self.port), 1).close()
        except OSError:
            return False
        return True


def free_port() -> int:
    """Return a port of this machine on which nothing listens now.

    It is none of those that systems give to connections on their way out: one of them could have
    taken it when the gateway starts again.
    """
    while True:
        port = SystemRandom().randrange(*PORTS)
        with contextlib.suppress(OSError), socket.create_server((HOST, port)):
            return port

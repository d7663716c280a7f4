"""A real gateway in a process of its own, which can be stopped, killed and started again."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryFile

from tests.support.ports import free_port
from tests.support.processes import fork_server
from tests.support.waiting import SECONDS, listens, until

COMMAND = Path(sys.executable).with_name("tidegate")

LARGEST_OUTPUT = 1 << 20
"""Bytes that a command may write."""


def tidegate(
    *words: object, folder: Path | None = None, stdin: str = ""
) -> "subprocess.CompletedProcess[str]":
    """Run the command to its end with `stdin` as its input; return what it wrote as well."""
    command = [str(COMMAND), *map(str, words)]
    with TemporaryFile() as given, TemporaryFile() as output, TemporaryFile() as errors:
        given.write(stdin.encode())
        given.seek(0)
        process = fork_server.start(command, folder or Path.cwd(), given, output, errors)
        try:
            status = process.wait(SECONDS)
        finally:
            process.kill()
        texts = [os.pread(file.fileno(), LARGEST_OUTPUT, 0).decode() for file in (output, errors)]
    return subprocess.CompletedProcess(command, status, *texts)


class GatewayProcess:
    """`tidegate run` on a free port with its data in `folder`; its log is `folder/log`."""

    def __init__(self, folder: Path, config: str | None = None, *arguments: str) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.port = free_port()
        self.log_file = folder / "log"
        self._arguments = ["--port", str(self.port), "--data", str(self.data), *arguments]
        if config is not None:
            self.configure(config)
            self._arguments += ["--config", str(folder / "gateway.toml")]
        self.process: subprocess.Popen[bytes] | fork_server.Forked | None = None

    def configure(self, config: str) -> None:
        """Give its next start this configuration, in place of another."""
        (self.folder / "gateway.toml").write_text(config, encoding="utf-8")

    def start(
        self, environment: Mapping[str, str] | None = None, *, anew: bool = False
    ) -> "GatewayProcess":
        """Start it and return when it takes connections.

        `anew`, or with more in its environment, it is what an exec of the command makes, and else a
        fork of a process that has imported it.
        """
        words = [str(COMMAND), "run", *self._arguments]
        with self.log_file.open("ab") as log, Path(os.devnull).open("rb") as nothing:
            if anew or environment:
                self.process = subprocess.Popen(
                    words,
                    cwd=self.folder,
                    stdin=nothing,
                    stdout=log,
                    stderr=log,
                    env={**os.environ, **(environment or {})},
                )
            else:
                self.process = fork_server.start(words, self.folder, nothing, log, log)
        until(self.listens, "the gateway listens", self.log)
        return self

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Ask it to end and return its exit status."""
        assert self.process is not None, "not started"
        self.process.send_signal(number)
        status = self.process.wait(SECONDS)
        self.process = None
        return status

    def kill(self) -> None:
        """End it as a power cut would; nothing if it does not run."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(SECONDS)
            self.process = None

    def listens(self) -> bool:
        """Return whether it takes connections."""
        assert self.process is None or self.process.poll() is None, self.log()
        return listens(self.port)

    def memory(self) -> int:
        """Return the KiB of memory that it occupies."""
        assert self.process is not None, "not started"
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        (line,) = (line for line in status.splitlines() if line.startswith("VmRSS:"))
        return int(line.split()[1])

    def log(self) -> str:
        """Return what it has logged so far, over all its starts."""
        return self.log_file.read_text(encoding="utf-8")

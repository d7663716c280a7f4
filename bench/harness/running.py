"""A broker that runs on a core of its own, with a data folder that outlives its restarts."""

import contextlib
import os
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.harness.brokers import Broker, Keeping
from bench.harness.errors import MeasurementError
from bench.harness.processes import tree

_CORES = sorted(os.sched_getaffinity(0))
BROKER_CORE, LOAD_CORE = _CORES[0], _CORES[-1]

_ENDS_WITH_US = ("setpriv", "--pdeathsig", "KILL")
"""Before a command: a benchmark that is broken off leaves no broker behind."""

START_SECONDS = 30.0
END_SECONDS = 20.0
QUIET_SECONDS = 0.3
"""Between the first CONNACK and the measurement."""

CONNECT = b"\x10\x11\0\4MQTT\4\2\0\x1e\0\5ready"


class Running:
    """One broker process as a context; `port`, `folder`, `process`, `start_seconds` are its own."""

    def __init__(self, broker: Broker, keeping: Keeping = Keeping.STOCK) -> None:
        self.broker = broker
        self.port = _free_port()
        self.start_seconds = 0.0
        self._keeping = keeping
        self.folder = Path(tempfile.mkdtemp(prefix=f"bench-{broker.name}-"))
        self._log = self.folder / "output.log"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        if kind is None and self._process is not None and self.broker.end != signal.SIGKILL:
            self.stop(self.broker.end)
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def process(self) -> int:
        """Its process number."""
        assert self._process is not None, "not started"
        return self._process.pid

    def start(self) -> None:
        """Return when it answers a CONNECT, and a moment later."""
        command = self.broker.command(self.port, self.folder, self._keeping)
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # the broker inherits it
        environment = {**os.environ, "HOME": str(self.folder), **self.broker.environment}
        begun = time.monotonic()
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*_ENDS_WITH_US, "taskset", "-c", str(BROKER_CORE), *command],
                cwd=self.folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        while not self._answers():
            self.check()
            if time.monotonic() - begun > START_SECONDS:
                raise MeasurementError(
                    f"{self.broker.name} is not ready after {START_SECONDS:.0f} s"
                )
            time.sleep(0.02)
        self.start_seconds = time.monotonic() - begun
        time.sleep(QUIET_SECONDS)

    def check(self) -> None:
        """Raise MeasurementError if it has ended."""
        if self._process is not None and self._process.poll() is not None:
            last = self._log.read_text(encoding="utf-8", errors="replace")[-300:]
            raise MeasurementError(
                f"{self.broker.name} ended with {self._process.returncode}: {last!r}"
            )

    def stop(self, number: signal.Signals) -> None:
        """End it by a signal, and return when it has ended; `start` may follow."""
        assert self._process is not None, "not started"
        os.kill(tree(self._process.pid)[-1], number)
        self._process.wait(END_SECONDS)
        self._process = None

    def kill(self) -> None:
        """End it and its descendants as a power cut would."""
        if self._process is None:
            return
        for process in tree(self._process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self._process.wait(END_SECONDS)
        self._process = None

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as connection:
                connection.settimeout(2)
                connection.sendall(CONNECT)
                answer = connection.recv(4)
                connection.sendall(b"\xe0\0")
        except OSError:
            return False
        return answer == b"\x20\x02\0\0"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port

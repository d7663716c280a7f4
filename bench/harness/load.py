"""One run of the load generator, in step with the measurement."""

import contextlib
import json
import os
import select
import subprocess
import time
from types import TracebackType
from typing import Any, Self

from bench.harness import builds
from bench.harness.errors import MeasurementError
from bench.harness.running import LOAD_CORE, Running

END_SECONDS = 20.0
MQTT_3_1_1, MQTT_5 = 4, 5


class Load:
    """A generator as a context: `ready` and `begin` for each of its phases, then `result`."""

    def __init__(
        self, running: Running, version: int, *options: object, seconds: float = 120.0
    ) -> None:
        self._running = running
        self._deadline = time.monotonic() + seconds
        self._seconds = seconds
        self._read = b""
        command = ["taskset", "-c", str(LOAD_CORE), str(builds.generator()), "--quiet", "--sync"]
        command += ["--port", str(running.port), "--version", str(version), *map(str, options)]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        if kind is not None:
            self._process.kill()
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._process.stderr.close()

    def ready(self) -> None:
        """Return when the next phase is set up."""
        line = self._line()
        if not line.startswith("READY"):
            raise MeasurementError(f"the generator said {line}")

    def begin(self) -> None:
        """Let the phase begin."""
        assert self._process.stdin
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()

    def result(self) -> dict[str, Any]:
        """Return what the generator reports, at the end of the last phase."""
        report: dict[str, Any] = json.loads(self._line())
        return report

    def _line(self) -> str:
        assert self._process.stdout
        while b"\n" not in self._read:
            left = self._deadline - time.monotonic()
            if left <= 0:
                raise MeasurementError(f"no result within {self._seconds:.0f} s")
            if select.select([self._process.stdout], [], [], min(left, 0.5))[0]:
                chunk = os.read(self._process.stdout.fileno(), 65536)
                if not chunk:
                    raise MeasurementError(self._last_words())
                self._read += chunk
            else:
                self._running.check()
        line, _, self._read = self._read.partition(b"\n")
        return line.decode()

    def _last_words(self) -> str:
        assert self._process.stderr
        status = self._process.wait()
        output = self._process.stderr.read().decode("utf-8", "replace").strip()
        return output or f"the generator ended with {status}"

"""Starts `tidegate` in forks of a process that has imported it, for an eighth of what Python takes.

Each is a process of its own with its own sockets, files and signals, as after an exec. Tests of
the start itself, of memory and of what is imported start the command anew.
"""

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    import coverage

IMPORTED = (
    "gateway.cli.run",
    "gateway.app.start",
    "gateway.app.checks.check",
    "gateway.server.gateway_loop",
    "gateway.telemetry.logs",
    "gateway.storage.engine.writer",
    "gateway.app.uplink.uplinks",
    "gateway.bridges.serial.serial_bridge",
    "gateway.cli.local_broker",
    "gateway.cli.where.history",
    "gateway.bridges.supervision.supervisor",
    "gateway.uplink.fleet.fleet",
    "gateway.uplink.uplink",
    "importlib.metadata",
    "serial",
    "coverage",
)
"""Modules that are in memory before the first fork, with all that they import."""

MEASURED = "COVERAGE_PROCESS_CONFIG"
"""What coverage tells the processes of its `subprocess` patch by."""

LARGEST = 1 << 18
"""Bytes of a request: the words, the folder and the environment of a process."""


class Forked:
    """A process that a fork server has started; in form a `subprocess.Popen`."""

    def __init__(self, words: Sequence[str], status: socket.socket) -> None:
        self.args = words
        self.returncode: int | None = None
        self._status = status
        self.pid = int(status.recv(64))

    def poll(self) -> int | None:
        """Return its exit status, None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Return its exit status, minus the signal's number if it was killed."""
        if self.returncode is None:
            self._status.settimeout(timeout)
            try:
                self.returncode = int(self._status.recv(64))
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0) from None
            self._status.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)


def start(words: Sequence[str], folder: Path, *streams: IO[bytes]) -> Forked:
    """Start `tidegate` with these words in a folder, and this process's environment.

    Its standard input, output and error output are `streams`.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    request = json.dumps([words, str(folder), dict(os.environ)]).encode()
    with theirs:
        files = [*(each.fileno() for each in streams), theirs.fileno()]
        socket.send_fds(_server(), [request], files)
    return Forked(words, ours)


@functools.cache
def _server() -> socket.socket:
    """Start the server of this process, which ends with it, and return the way to it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * LARGEST)
    environment = {
        name: text for name, text in os.environ.items() if not name.startswith("COVERAGE_")
    }
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.processes.fork_server", str(theirs.fileno())],
            cwd=Path(__file__).parents[3],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env=environment,
            pass_fds=[theirs.fileno()],
        )
    atexit.register(process.wait)
    atexit.register(ours.close)
    return ours


class Server:
    """Forks for one process of tests, and tells it how what was forked has ended."""

    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests
        self._running: dict[int, socket.socket] = {}
        self._woken, waker = socket.socketpair()
        waker.setblocking(False)
        signal.set_wakeup_fd(waker.fileno())
        self._waker = waker
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever has asked is interrupted too

    def run(self) -> None:
        """Serve until nobody can ask any more."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._requests, selectors.EVENT_READ, self._fork)
            selector.register(self._woken, selectors.EVENT_READ, self._bury)
            while True:
                for key, _ in selector.select():
                    if not key.data():
                        return

    def _fork(self) -> bool:
        request, files, _, _ = socket.recv_fds(self._requests, LARGEST, 4)
        if not request:
            return False
        *streams, status = files
        words, folder, environment = json.loads(request)
        if MEASURED in environment:
            os.environ[MEASURED] = environment[MEASURED]
            _coverage(environment[MEASURED])
        process = os.fork()
        if not process:
            self._become(words, folder, environment, streams)
        for file in streams:
            os.close(file)
        self._running[process] = socket.socket(fileno=status)
        self._running[process].send(str(process).encode())
        return True

    def _bury(self) -> bool:
        self._woken.recv(1024)
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                with self._running.pop(ended[0]) as status, contextlib.suppress(OSError):
                    status.send(str(os.waitstatus_to_exitcode(ended[1])).encode())
        return True

    def _become(
        self, words: list[str], folder: str, environment: dict[str, str], streams: list[int]
    ) -> NoReturn:
        """Run the command as if this process had been started for it."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for number, file in enumerate(streams):
            os.dup2(file, number)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = words
        leave(_run())


@functools.cache
def _coverage(config: str) -> "coverage.Coverage":
    """Return what measures by this configuration, of MEASURED, made ready for forks to start it.

    Nine tenths of its first start are spent on finding the files of all modules.
    """
    import coverage

    made = coverage.process_startup(force=True)
    assert made is not None, config
    made.stop()
    return made


def leave(status: int) -> NoReturn:
    """End a fork, once all that waits for the end is done."""
    threading._shutdown()  # type: ignore[attr-defined]  # as multiprocessing does in its forks
    atexit._run_exitfuncs()
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
    os._exit(status)


def _run() -> int:
    """Run the command; return its exit status."""
    from gateway.cli.main import main

    if MEASURED in os.environ:
        _coverage(os.environ[MEASURED]).start()
    status: object = 1
    try:
        status = main()
    except SystemExit as error:
        status = error.code
    except BaseException:  # noqa: BLE001  # what the interpreter does with it
        traceback.print_exc()
    return status if isinstance(status, int) else int(status is not None)


def _serve(descriptor: int) -> None:
    for name in IMPORTED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    Server(socket.socket(fileno=descriptor)).run()


if __name__ == "__main__":
    _serve(int(sys.argv[1]))

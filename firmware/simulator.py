"""A sensor node on a pseudo-terminal: the board's own files, run by this computer's Python.

    python firmware/simulator.py --node n1 --port var/node

`--port` becomes a link to a terminal that a gateway opens like any serial port. The simulator
ends, and removes the link, at SIGTERM, SIGINT and SIGHUP, when the program that started it is
gone, and when its standard input is a pipe and ends.
"""

import argparse
import os
import select
import signal
import stat
import sys
import time
import tty
from pathlib import Path
from types import FrameType

from node.buffer import WAITING_BYTES
from node.loop import Node
from node.simulated_sensor import SimulatedSensor

READ_MAX = 4096
"""Bytes taken at once: what the kernel keeps for a terminal."""

STANDARD_INPUT = 0

RESEND_MS = 400
"""Shorter than a board's: there is no baud rate here, and what was sent before the gateway opened
the line, which clears it, comes again before the next sample."""

CHECK_MS = 200
"""Milliseconds between two looks at whether to end: asked to, or the parent is gone."""


class Terminal:
    """The node's end of a pseudo-terminal; `gateway_end` is the path of the other.

    The simulator holds the other end open too, so that the line outlives the gateway's restarts.
    """

    def __init__(self) -> None:
        self.descriptor, self._other = os.openpty()
        self.gateway_end = os.ttyname(self._other)
        tty.setraw(self._other)  # otherwise the kernel echoes the node's frames back to it
        os.set_blocking(self.descriptor, False)

    def read(self) -> bytes:
        """Return what the gateway has sent, without waiting."""
        try:
            return os.read(self.descriptor, READ_MAX)
        except BlockingIOError:
            return b""

    def write(self, data: bytes) -> int:
        """Send; what the kernel does not take while nobody reads is lost, as on a real line."""
        try:
            return os.write(self.descriptor, data)
        except BlockingIOError:
            return 0


class Uptime:
    """This computer's clock, from its making on."""

    def __init__(self) -> None:
        self._start = time.monotonic_ns()

    def ms(self) -> int:
        """Return milliseconds since the start."""
        return (time.monotonic_ns() - self._start) // 1_000_000


class Computer:
    """What stands for a board."""

    def identify(self, seconds: int) -> None:
        """Say on standard error which simulator this is."""
        print(f"simulator {os.getpid()}: here, for {seconds} s", file=sys.stderr, flush=True)

    def restart(self) -> None:
        """Start the program anew, in the same process and with another boot id."""
        os.execl(sys.executable, sys.executable, *sys.argv)  # noqa: S606 - itself, no shell


class StopRequest:
    """Whether a signal asked the simulator to end; looked at between two steps."""

    def __init__(self) -> None:
        self.made = False
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._note)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.made = True


def link(path: Path, target: str) -> None:
    """Make `path` a link to `target` in one step; an older link there is replaced."""
    if path.exists() and not path.is_symlink():
        raise FileExistsError(f"{path} exists and is not a link: it stays as it is")
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(target)
    temporary.replace(path)


def unlink(path: Path, target: str) -> None:
    """Remove the link, unless it is another simulator's by now."""
    if path.is_symlink() and os.readlink(path) == target:
        path.unlink()


def pipes() -> list[int]:
    """Return standard input if it is a pipe whose end means something (/dev/null's does not)."""
    try:
        mode = os.fstat(STANDARD_INPUT).st_mode
    except OSError:  # closed
        return []
    return [STANDARD_INPUT] if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) else []


def run(node: Node, terminal: Terminal, parent: int, stop: StopRequest) -> None:
    """Step the node until asked to stop, or until the process `parent` is gone."""
    # The parent's number is compared, because the kernel's own parent-death signal comes
    # already when the thread that started us ends.
    watched = pipes()
    watched.append(terminal.descriptor)
    while not stop.made and os.getppid() == parent:
        wait_ms = min(node.step(), CHECK_MS)
        readable, _, _ = select.select(watched, [], [], wait_ms / 1000)
        if STANDARD_INPUT in readable and not os.read(STANDARD_INPUT, READ_MAX):
            return


def arguments() -> argparse.Namespace:
    """Return what the command line says."""
    parser = argparse.ArgumentParser(description="A simulated sensor node on a pseudo-terminal.")
    parser.add_argument("--node", required=True, help="name of the node, such as n1")
    parser.add_argument("--port", required=True, type=Path, help="link to make for the gateway")
    parser.add_argument("--interval", type=float, default=1.0, help="seconds between samples")
    parser.add_argument(
        "--waiting-bytes", type=int, default=WAITING_BYTES, help="memory for samples that wait"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the simulated weather")
    parser.add_argument(
        "--parent", type=int, default=os.getppid(), help="process with which the simulator ends"
    )
    chosen = parser.parse_args()
    if chosen.interval < 0.001:
        parser.error(f"--interval {chosen.interval}: at least 0.001")
    return chosen


def main() -> int:
    """Run until asked to end; return the exit status."""
    chosen = arguments()
    stop = StopRequest()
    terminal = Terminal()
    try:
        node = Node(
            chosen.node,
            int.from_bytes(os.urandom(4), "little"),
            terminal,
            SimulatedSensor(chosen.seed),
            Uptime(),
            round(chosen.interval * 1000),
            lambda: time.time_ns() // 1000000,
            RESEND_MS,
            chosen.waiting_bytes,
            board=Computer(),
        )
        link(chosen.port, terminal.gateway_end)
        print(
            f"{chosen.port} -> {terminal.gateway_end}", flush=True
        )  # whoever waits for it reads it
        run(node, terminal, chosen.parent, stop)
    except (OSError, ValueError) as failure:
        print(f"simulator: {failure}", file=sys.stderr)
        return 2
    finally:
        unlink(chosen.port, terminal.gateway_end)
    return 0


if __name__ == "__main__":
    sys.exit(main())

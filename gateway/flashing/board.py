"""A board with an answering REPL: runs programs on it, copies files to it."""

import ast
import contextlib
import io
import struct
import termios
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from gateway.extras import how_to_install
from gateway.flashing.errors import FlashingError
from gateway.flashing.port import BAUD, Port, open_port

if TYPE_CHECKING:
    from mpremote.transport_serial import SerialTransport
    from serial import Serial

CHUNK = 1024
"""Bytes of a file in one program; a board needs about five times as much memory for them."""

REPL_SECONDS = 2.0
"""Seconds within which an interrupted board offers its REPL."""

ATTEMPTS = 3

RUN = b"\x04"
DONE = b"OK\x04\x04"
"""Runs a program in the raw REPL, and the answer for one that prints nothing. The prompt after it
belongs to the next program."""

SAVING = b"saving"
"""A node prints it repeatedly while it saves unacknowledged samples to its flash."""

SAVING_SECONDS = 90.0
"""Seconds in which an hour of samples is saved."""

RECEIVED_MAX = 256
"""Bytes that are searched for an interrupted node's output."""

FRAME_END = b"\0"
"""After it a node handles Ctrl-C; a REPL ignores it."""

PASTE_END = b"\x04"
"""Ends a partial program of a killed sender; without one it restarts a REPL."""

ANSWER_SECONDS = 30.0
"""Seconds for a whole answer; writing or comparing files takes several."""

READ_SECONDS = 2.0
"""Seconds without a byte within an answer after which the board is considered lost."""

RESET = """
import machine, time
time.sleep(0.1)
machine.reset()
"""
"""A USB board removes its port at once, before it has confirmed the program."""

GARBLED = (struct.error, TypeError, ValueError, SyntaxError)
"""Exceptions of mpremote when a board is reset or unplugged within an answer."""

Progress = Callable[[int], None]
"""Called with the number of further bytes that have been written."""

DESCRIBE = """
import sys, os, machine
u = os.uname() if hasattr(os, "uname") else None
print(repr((
    sys.platform,
    u[4] if u else getattr(sys.implementation, "_machine", sys.platform),
    sys.implementation[0],
    list(sys.implementation[1][:3]),
    getattr(sys.implementation, "_mpy", 0) & 255,
    bytes(machine.unique_id()),
)))
"""

LIST = """
import os, hashlib, binascii
def walk(folder):
    try:
        entries = list(os.ilistdir(folder))
    except OSError:
        return
    for entry in entries:
        path = folder + "/" + entry[0]
        if entry[1] & 0x4000:
            walk(path)
        else:
            digest, block = hashlib.sha256(), memoryview(bytearray(512))
            with open(path, "rb") as file:
                while True:
                    count = file.readinto(block)
                    if not count:
                        break
                    digest.update(block[:count])
            print(path, binascii.hexlify(digest.digest()).decode())
walk(%r)
"""

REPLACE = """
import os
try:
    os.rename(%(new)r, %(old)r)
except OSError:
    os.remove(%(old)r)
    os.rename(%(new)r, %(old)r)
if hasattr(os, "sync"):
    os.sync()
"""


@dataclass(frozen=True, slots=True)
class Description:
    """A board's description of itself; `bytecode` is the version of .mpy files, 0 for none."""

    platform: str
    machine: str
    version: str
    bytecode: int
    unique_id: str


class _Line:
    """A serial port on which every read ends at a deadline.

    Without one mpremote waits for the end of an answer as long as bytes arrive; a board that has
    started its program never stops.
    """

    def __init__(self, serial: "Serial") -> None:
        self.serial = serial
        self.deadline = 0.0
        self.received = b""
        """The last bytes that were read."""

    def read(self, size: int = 1) -> bytes:
        if time.monotonic() > self.deadline:
            raise TimeoutError("no end of its answer")
        data = self.serial.read(size)
        self.received = (self.received + data)[-RECEIVED_MAX:]
        return data

    def await_silence(self, seconds: float) -> None:
        """Read until nothing arrives for a while, at most so many seconds."""
        end = time.monotonic() + seconds
        while self.serial.read(1) and time.monotonic() < end:
            pass

    def __getattr__(self, name: str) -> Any:
        return getattr(self.serial, name)


class Board:
    """A board in its raw REPL; errors name its port."""

    def __init__(self, port: Port, transport: "SerialTransport") -> None:
        self.port = port
        self._transport = transport
        self._line = transport.serial = _Line(transport.serial)

    @classmethod
    def connect(cls, port: Port) -> "Board":
        """Interrupt the board's program; raise FlashingError where no REPL answers."""
        board = cls(port, _open(port))
        try:
            board._enter()
        except BaseException:
            board.close()
            raise
        return board

    def close(self) -> None:
        """Close the port; the board's program continues."""
        with contextlib.suppress(OSError, termios.error):  # it may be unplugged
            self._transport.close()

    def describe(self) -> Description:
        """Return the board's hardware and software."""
        platform, machine, name, version, bytecode, unique_id = self.ask(DESCRIBE)
        numbers = ".".join(map(str, version))
        title = "MicroPython" if name == "micropython" else name
        return Description(platform, machine, f"{title} {numbers}", bytecode, unique_id.hex())

    def run(self, program: str) -> str:
        """Run a program on the board; return its output."""
        with self._errors("run a program"):
            printed: bytes = self._transport.exec(program)
            return printed.decode(errors="replace")

    def hashes(self, folder: str) -> dict[str, str]:
        """Return the SHA-256 of each file below `folder`, by its path; none without the folder."""
        lines = [line.rpartition(" ") for line in self.run(LIST % folder).splitlines()]
        return {path: digest for path, _, digest in lines}

    def read(self, path: str) -> bytes | None:
        """Return a file's content, None where there is none."""
        with self._errors(f"read {path}"):
            if not self._transport.fs_exists(path):
                return None
            return bytes(self._transport.fs_readfile(path, CHUNK))

    def write(self, path: str, content: bytes, progress: Progress = lambda _: None) -> None:
        """Write a file, and the folders above it, in place."""
        written = 0

        def note(total: int, _of: int) -> None:
            nonlocal written
            progress(total - written)
            written = total

        folders = [str(each) for each in PurePosixPath(path).parents][-2::-1]
        with self._errors(f"write {path}"):
            for folder in folders:
                if not self._transport.fs_exists(folder):
                    self._transport.fs_mkdir(folder)
            self._transport.fs_writefile(path, content, CHUNK, note)

    def replace(self, path: str, content: bytes) -> None:
        """Write a file atomically: the board has the old or the new one at any moment."""
        self.write(path + ".new", content)
        self.run(REPLACE % {"new": path + ".new", "old": path})

    def remove(self, path: str) -> None:
        """Remove a file."""
        with self._errors(f"remove {path}"):
            self._transport.fs_rmfile(path)

    def extend_hold(self) -> None:
        """Restart the time after which a waiting board starts its program."""
        self.run("if 'HELD' in globals():\n    hold()")

    def reset(self) -> None:
        """Reset the board and close its port, which a USB board removes for a moment."""
        with self._errors("be reset"):
            self._transport.exec_raw_no_follow(RESET)
            self._line.flush()
        self.close()

    def ask(self, program: str) -> Any:
        """Return the Python value that a program prints."""
        printed = self.run(program)
        try:
            return ast.literal_eval(printed.strip())
        except (SyntaxError, ValueError) as error:
            raise FlashingError(f"{self.port}: unexpected answer {printed[:80]!r}") from error

    def _enter(self) -> None:
        """Interrupt the program; a starting board may miss it, and a node saves first."""
        end = time.monotonic() + SAVING_SECONDS
        left, late = ATTEMPTS, False
        begin = FRAME_END
        while True:
            try:
                with self._errors("offer its REPL", REPL_SECONDS):
                    self._line.write(begin)
                    self._transport.enter_raw_repl(soft_reset=False, timeout_overall=REPL_SECONDS)
                if late:
                    self._skip_late_answers()
            except FlashingError:
                late = True
                left -= 1
                begin = FRAME_END if begin != FRAME_END else PASTE_END + FRAME_END
                if SAVING in self._line.received and time.monotonic() < end:
                    left = ATTEMPTS
                    self._wait_while_saving(end)
                if not left:
                    raise
            else:
                return

    def _skip_late_answers(self) -> None:
        """Read past the board's answers to abandoned attempts, up to a mark."""
        with self._errors("come to the end of its answers", REPL_SECONDS):
            self._line.write(b"pass" + RUN)
            found = self._transport.read_until(1, DONE, timeout=REPL_SECONDS)
            if not found.endswith(DONE):
                raise OSError(f"it said {found[-80:]!r}")

    def _wait_while_saving(self, end: float) -> None:
        with self._errors("save its samples"):
            self._line.await_silence(end - time.monotonic())
        self._line.received = b""

    @contextlib.contextmanager
    def _errors(self, what: str, seconds: float = ANSWER_SECONDS) -> Iterator[None]:
        """Raise FlashingError for exceptions of mpremote and pyserial; drop mpremote's output."""
        from mpremote.transport import TransportError, TransportExecError

        self._line.deadline = time.monotonic() + seconds
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                yield
        except TransportExecError as error:
            last = error.error_output.strip().splitlines()[-1:] or ["nothing"]
            raise FlashingError(f"{self.port}: the board could not {what}: {last[0]}") from error
        except (TransportError, OSError, termios.error) as error:
            raise FlashingError(f"{self.port}: the board did not {what}: {error}") from error
        except GARBLED as error:
            text = f"{self.port}: the board did not {what}: its answer broke off"
            raise FlashingError(text) from error


def _open(port: Port) -> "SerialTransport":
    try:
        from mpremote.transport import TransportError
        from mpremote.transport_serial import SerialTransport
    except ImportError as error:
        raise FlashingError(f"{error.name} is not installed: {how_to_install('flash')}") from error
    open_port(port, READ_SECONDS).close()  # it reports what is wrong; mpremote does not
    path = port.device  # mpremote recognizes a pseudo-terminal only by its own path
    try:
        return SerialTransport(path, BAUD, timeout=READ_SECONDS)
    except (OSError, termios.error, TransportError) as error:
        raise FlashingError(f"{port}: {error}") from error

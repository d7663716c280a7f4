"""A command on a pseudo-terminal that shows, types and answers as a person's does."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import tempfile
import termios
import threading
import time
from contextlib import suppress

from tests.support.waiting import SECONDS
from tests.tui.emulator import Screen, show, text_of

WHERE, HERE = b"\x1b[6n", b"\x1b[1;1R"
"""the question where the cursor is, and its answer"""
FAST = 1_000_000
STEP = 0.005
"""seconds between two reads of a slow terminal"""


class Terminal:
    """Takes `rate` bytes a second, as a serial line does; answers what it is asked by then."""

    def __init__(
        self,
        command: list[str],
        columns: int = 100,
        lines: int = 30,
        rate: int = FAST,
        *,
        answers: bool = True,
    ) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        state = tempfile.mkdtemp()
        environment = os.environ | {"TERM": "xterm-256color", "XDG_STATE_HOME": state}
        self.process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment
        )
        os.close(theirs)
        self.taken = 0
        """bytes that it has shown"""
        self._rate, self._answers = rate, answers
        self._screen: Screen = {}
        self._rest = b""
        self._changed = threading.Condition()
        self._gone = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        began, taken = time.monotonic(), 0
        with suppress(OSError):  # the command has closed the terminal
            while not self._gone.is_set():
                allowed = int((time.monotonic() - began) * self._rate) - taken
                if allowed <= 0:
                    time.sleep(STEP)
                    continue
                if not select.select([self._ours], [], [], STEP)[0]:
                    continue
                part = os.read(self._ours, min(allowed, 65_536))
                if time.monotonic() - began > 0.5 and len(part) < allowed:
                    began, taken = time.monotonic(), 0  # nothing had come: no bytes are saved up
                taken += len(part)
                self._take(part)

    def _take(self, part: bytes) -> None:
        with self._changed:
            self.taken += len(part)
            data = self._rest + part
            end = data.rfind(b"\x1b") if b"\x1b" in data[-32:] else len(data)
            self._rest = data[end:]
            show(data[:end].decode(errors="ignore"), self._screen)
            questions = data[:end].count(WHERE)
            if self._rest.endswith(WHERE):
                questions, self._rest = questions + 1, b""
            self._changed.notify_all()
        if self._answers and questions:
            os.write(self._ours, HERE * questions)

    def text(self) -> str:
        """Return what is shown."""
        with self._changed:
            return text_of(self._screen)

    def read_until(self, text: str) -> float:
        """Wait until this text is on the screen; return the seconds that took."""
        began = time.monotonic()
        with self._changed:
            found = self._changed.wait_for(lambda: text in text_of(self._screen), SECONDS)
        assert found, f"{text!r} not in\n{self.text()}"
        return time.monotonic() - began

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._ours, keys.encode())

    def hang_up(self) -> None:
        """End, as a window that is closed."""
        self._gone.set()
        self._reader.join()  # a read that goes on would keep it open
        os.close(self._ours)

    def end(self) -> int:
        """Wait until the command ends and return its exit status."""
        return self.process.wait(SECONDS)

    def close(self) -> None:
        """End the command if need be and give the terminal back."""
        self.process.kill()
        self.process.wait()
        if not self._gone.is_set():
            self.hang_up()

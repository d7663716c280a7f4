"""Writes to standard error without blocking, even if a pipe or terminal is not read for hours.

Output that is not accepted at once is buffered, up to a bound, for a thread that writes it later.
"""

import io
import os
import select
import socket
import stat
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TextIO

WAITING_BYTES = 65_536
"""Bytes of lines that wait for the reader of standard error: some 800 lines. Further lines are
dropped and counted, until half of it is free again."""

LAST_WAIT = 2.0
"""Seconds for which the end of the process waits for the last lines to be written."""

RETRY = 1.0
"""Seconds before retrying a descriptor that does not report that it is writable."""

PAUSE = 0.05
"""Seconds before retrying a descriptor that was writable and accepted nothing."""


class BufferedOutput(io.TextIOBase):
    """Writes text in order and never blocks the caller; safe in any thread.

    `send` writes bytes to the descriptor and returns how many it accepted. If it is not `direct` it
    may block: then only the thread calls it. `dropped` counts dropped lines, and `gap` makes the
    line that replaces them.
    """

    def __init__(self, descriptor: int, send: Callable[[bytes], int], *, direct: bool) -> None:
        self.dropped = 0
        self.gap: Callable[[int], str] = lambda count: f"lines dropped here: {count}\n"
        self._send = send
        self._direct = direct
        self._writable = select.poll()
        self._writable.register(descriptor, select.POLLOUT)
        self._lock = threading.RLock()  # a line may be written during garbage collection
        self._changed = threading.Condition(self._lock)
        # The first belongs to the thread once the lock is released with it in here.
        self._waiting: deque[bytes] = deque()
        self._bytes = 0  # of what waits
        self._untold = 0  # dropped lines before the next one
        self._thread: threading.Thread | None = None

    def write(self, text: str) -> int:
        """Write as much of the text as possible at once; buffer or drop the rest."""
        data = text.encode(errors="backslashreplace")
        with self._lock:
            if self._untold or (self._waiting and self._bytes + len(data) > WAITING_BYTES):
                lines = text.count("\n")
                self.dropped += lines
                self._untold += lines
            else:
                self._add(data)
                if self._direct and len(self._waiting) == 1:
                    self._advance(self._rest(data))
            if self._waiting:
                self._wake()
        return len(text)

    def finish(self) -> None:
        """Wait until all is written, LAST_WAIT seconds at most."""
        with self._lock:
            self._changed.wait_for(lambda: not self._waiting, LAST_WAIT)

    def _rest(self, data: bytes) -> bytes:
        """Write the data and return the unwritten rest."""
        try:
            return data[self._send(data) :]
        except BlockingIOError:
            return data
        except OSError:  # its reader is gone: nobody reads a report
            self.dropped += data.count(b"\n")
            return b""

    def _add(self, data: bytes) -> None:
        self._waiting.append(data)
        self._bytes += len(data)

    def _advance(self, rest: bytes) -> None:
        """Replace the first buffered piece by its rest.

        Report dropped lines once there is space.
        """
        written = len(self._waiting[0]) - len(rest)
        self._bytes -= written
        if rest:
            self._waiting[0] = rest
        else:
            self._waiting.popleft()
        if self._untold and self._bytes <= WAITING_BYTES // 2:
            lines, self._untold = self._untold, 0
            self._add(self.gap(lines).encode(errors="backslashreplace"))

    def _wake(self) -> None:
        if self._thread is not None:
            self._changed.notify_all()
            return
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:  # no more threads: the next line tries again
            self._thread = None

    def _join(self) -> bytes:
        """Return all that waits in one piece: with a busy event loop each write takes a while.

        Lines may be added meanwhile, even by this thread: during garbage collection.
        """
        count = len(self._waiting)
        data = b"".join([self._waiting[index] for index in range(count)])
        for _ in range(count - 1):
            del self._waiting[1]
        self._waiting[0] = data
        return data

    def _run(self) -> None:
        while True:
            with self._lock:
                self._changed.wait_for(lambda: self._waiting)
                data = self._join()
            if self._direct:
                self._writable.poll(RETRY * 1000)
            rest = self._rest(data)
            with self._lock:
                self._advance(rest)
                if not self._waiting:
                    self._changed.notify_all()  # of the end, if `finish` waits for it
            if rest and len(rest) == len(data):
                time.sleep(PAUSE)


def buffered(stream: TextIO) -> TextIO | BufferedOutput:
    """Return a stream that writes to the same place without blocking.

    The descriptor may be shared with other processes, and so is its blocking mode, which stays as
    it is. Linux opens a pipe or a terminal again if its owner allows it, a socket has a flag for
    each write, and for others a thread waits.
    """
    try:
        descriptor = stream.fileno()
        mode = os.fstat(descriptor).st_mode
    except (OSError, ValueError):  # it is in memory, or closed
        return stream
    if stat.S_ISSOCK(mode):
        peer = socket.socket(fileno=os.dup(descriptor))
        return BufferedOutput(
            peer.fileno(), lambda data: peer.send(data, socket.MSG_DONTWAIT), direct=True
        )
    if not stat.S_ISFIFO(mode) and not os.isatty(descriptor):
        return stream
    try:
        own = os.open(f"/proc/self/fd/{descriptor}", os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
        direct = True
    except OSError:
        own = os.dup(descriptor)
        direct = False
    return BufferedOutput(own, partial(os.write, own), direct=direct)

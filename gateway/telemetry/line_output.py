"""Writes log lines to standard error, singly or the lines of a turn together."""

import io
import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import TextIO

from gateway.telemetry.buffered_output import BufferedOutput

HELD_CHARACTERS = 8_000
"""Maximum characters of buffered lines; more are written at once."""


class WithoutLock(logging.Handler):
    """A handler whose `emit` may run in several threads at once."""

    def createLock(self) -> None:  # noqa: N802 - the base class's name
        """Create no lock."""
        self.lock = None

    def handle(self, record: logging.LogRecord) -> bool:
        """Emit the record without filters."""
        self.emit(record)
        return True


class HeldLines(io.TextIOBase):
    """A stream that writes each line at once or buffers lines until it is flushed.

    `holds_back` is called before each line; it returns True only if `flush` is certain to follow.
    Lines stay in order, from any thread; those that cannot be written are lost.
    """

    def __init__(self, stream: TextIO | BufferedOutput) -> None:
        self.holds_back: Callable[[], bool] = lambda: False
        self._stream = stream
        self._held: deque[str] = deque()  # any thread may append
        self._characters = 0  # an upper bound of the buffered characters
        self._writing = threading.RLock()  # a line may be written during garbage collection

    def write(self, text: str) -> int:
        """Write the buffered lines and this one, or buffer it."""
        holds_back = self.holds_back()  # it may write other lines before
        self._held.append(text)
        self._characters += len(text)
        if self._characters > HELD_CHARACTERS or not holds_back:
            self.flush()
        return len(text)

    def flush(self) -> None:
        """Write the buffered lines in one call."""
        with self._writing:  # one thread's lines are written before another removes more
            self._characters = 0
            lines = []
            while self._held:
                lines.append(self._held.popleft())
            if lines:
                try:
                    self._stream.write("".join(lines))
                except (OSError, ValueError):  # a full disk, for example, or a closed stream
                    return


class LineOutput(WithoutLock, logging.StreamHandler[HeldLines]):
    """Writes each line in one call, unless the stream buffers it."""

    def __init__(self, stream: TextIO | BufferedOutput) -> None:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True)  # like standard error, unless replaced
        super().__init__(HeldLines(stream))
        self._buffered = stream if isinstance(stream, BufferedOutput) else None
        if self._buffered is not None:
            self._buffered.gap = self._gap

    @property
    def dropped(self) -> int:
        """Lines dropped because standard error was blocked."""
        return 0 if self._buffered is None else self._buffered.dropped

    def flush(self) -> None:
        """Do nothing; the stream flushes itself."""

    def close(self) -> None:
        """Write the buffered lines, and wait briefly for blocked output."""
        self.stream.flush()
        if self._buffered is not None:
            self._buffered.finish()
        super().close()

    def _gap(self, count: int) -> str:
        """Return the line that replaces dropped ones."""
        text = "log lines dropped here, since standard error accepted none: %d"
        record = logging.LogRecord(__name__, logging.WARNING, "", 0, text, (count,), None)
        return self.format(record) + self.terminator

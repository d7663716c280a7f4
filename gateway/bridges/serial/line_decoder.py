"""Lines on a serial line: bytes in any pieces to lines."""

from gateway.bridges.serial.splitter import Splitter
from gateway.counters import Counters

LINE_MAX = 1024
"""Bytes of a line: stops a device that never ends one from filling the memory."""


class LineDecoder:
    """Finds the lines in what a port delivers; counts what is too long to be one."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._splitter = Splitter(b"\n", LINE_MAX)

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that `data` ends, without line ends and blanks, empty ones left out."""
        before = self._splitter.skipped
        lines = [line.strip() for line in self._splitter.feed(data)]
        if self._splitter.skipped > before:
            self._counters.add("tidegate/serial/garbage_bytes", self._splitter.skipped - before)
        return [line for line in lines if line]

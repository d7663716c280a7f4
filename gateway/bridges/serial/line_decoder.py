"""Lines on a serial line: bytes in any pieces to lines."""

from codecs import BOM_UTF8

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
        """Return the lines that `data` ends, without line ends, empty ones left out.

        A line ends at a line feed, a carriage return, or both. A byte order mark is left out.
        """
        before = self._splitter.skipped
        pieces = self._splitter.feed(data.replace(b"\r", b"\n"))
        lines = [line.removeprefix(BOM_UTF8) for line in pieces]
        if self._splitter.skipped > before:
            self._counters.add("tidegate/serial/garbage_bytes", self._splitter.skipped - before)
        return [line for line in lines if line.strip()]

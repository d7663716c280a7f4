"""Frames on a serial line: bytes in any pieces to checked bodies, and a body to its bytes.

docs/serial-protocol.md, section "On the wire".
"""

from zlib import crc32

from gateway.bridges.serial.cobs import StuffingError, stuff, unstuff
from gateway.bridges.serial.splitter import Splitter
from gateway.counters import Counters

BODY_MAX = 240
"""Bytes of a frame before check and stuffing; a longer body belongs to no frame."""

CHECK_BYTES = 4
"""Bytes of the CRC-32 behind the body, the low byte first."""

STUFFED_MAX = BODY_MAX + CHECK_BYTES + 1
"""Bytes between two zeros: stops a line at the wrong baud rate from filling the memory."""


def encode_frame(body: bytes) -> bytes:
    """Return `body` as it goes on the wire, between two zero bytes."""
    return b"\0" + stuff(body + crc32(body).to_bytes(CHECK_BYTES, "little")) + b"\0"


class FrameDecoder:
    """Finds the frames in what a line delivers; counts what is none (`tidegate/serial/...`)."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._splitter = Splitter(b"\0", STUFFED_MAX)

    def feed(self, data: bytes) -> list[bytes]:
        """Return the body of each frame that `data` completes and that passes its check."""
        before = self._splitter.skipped
        pieces = self._splitter.feed(data)
        if self._splitter.skipped > before:
            self._counters.add("tidegate/serial/garbage_bytes", self._splitter.skipped - before)
        bodies = map(self._checked, pieces)
        return [body for body in bodies if body is not None]

    def _checked(self, stuffed: bytes) -> bytes | None:
        try:
            data = unstuff(stuffed)
        except StuffingError:
            data = b""
        if len(data) <= CHECK_BYTES:
            self._counters.add("tidegate/serial/garbage_bytes", len(stuffed))
            return None
        body, check = data[:-CHECK_BYTES], data[-CHECK_BYTES:]
        if crc32(body) != int.from_bytes(check, "little"):
            self._counters.add("tidegate/serial/crc_errors")
            return None
        return body

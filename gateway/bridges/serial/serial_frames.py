"""Frames and lines on a serial line: splits a byte stream into checked bodies or lines.

docs/understand/serial-protocol.md, section "On the wire".
"""

from codecs import BOM_UTF8, BOM_UTF16_BE
from collections.abc import Callable
from zlib import crc32

Count = Callable[[str, int], None]
"""Raises a counter of the bridge."""

BODY_MAX = 240
"""Bytes of a frame before check and stuffing; a longer body is no frame."""

CHECK_BYTES = 4
"""Bytes of the CRC-32 after the body, in little-endian order."""

STUFFED_MAX = BODY_MAX + CHECK_BYTES + 1
"""Bytes between two zeros: limits memory on a line at the wrong baud rate."""

LINE_MAX = 1024
"""Bytes of a line: limits memory if a device never ends one."""

DATA_MAX = 253
"""Bytes that fit one block of stuffing; frames are shorter, so the protocol never needs two."""


class StuffingError(ValueError):
    """Bytes that no stuffing yields."""


def stuff(data: bytes) -> bytes:
    """Return `data` (at most DATA_MAX bytes) without zero bytes, one byte longer.

    This is consistent overhead byte stuffing (COBS): afterwards a zero can end a frame.
    """
    if len(data) > DATA_MAX:
        raise StuffingError(f"{len(data)} bytes: at most {DATA_MAX} can be stuffed")
    stuffed = bytearray()
    for run in data.split(b"\0"):
        stuffed.append(len(run) + 1)
        stuffed += run
    return bytes(stuffed)


def unstuff(stuffed: bytes) -> bytes:
    """Return the data that `stuff` stuffed; raises StuffingError for bytes that it never yields."""
    runs = []
    position = 0
    while position < len(stuffed):
        end = position + stuffed[position]
        if not position < end <= len(stuffed):
            raise StuffingError(f"byte {position} points outside the {len(stuffed)} bytes")
        runs.append(stuffed[position + 1 : end])
        position = end
    return b"\0".join(runs)


def encode_frame(body: bytes) -> bytes:
    """Return `body` in its wire form, between two zero bytes."""
    return b"\0" + stuff(body + crc32(body).to_bytes(CHECK_BYTES, "little")) + b"\0"


class Splitter:
    """Splits a stream at a delimiter; a piece longer than `limit` is skipped to its end.

    Skipped bytes are counted as `garbage_bytes`.
    """

    def __init__(self, delimiter: bytes, limit: int, count: Count) -> None:
        self._delimiter = delimiter
        self._limit = limit
        self._count = count
        self._pending = b""
        self._overlong = False

    def feed(self, data: bytes) -> list[bytes]:
        """Return the pieces that `data` completes, without delimiters and empty pieces."""
        *ended, pending = (self._pending + data).split(self._delimiter)
        pieces, skipped = [], 0
        for piece in ended:
            if self._overlong or len(piece) > self._limit:
                skipped += len(piece)
                self._overlong = False
            elif piece:
                pieces.append(piece)
        if self._overlong or len(pending) > self._limit:
            skipped += len(pending)
            pending, self._overlong = b"", True
        self._pending = pending
        if skipped:
            self._count("garbage_bytes", skipped)
        return pieces


class FrameDecoder:
    """Finds the frames in a stream; other bytes are counted."""

    def __init__(self, count: Count) -> None:
        self._count = count
        self._splitter = Splitter(b"\0", STUFFED_MAX, count)

    def feed(self, data: bytes) -> list[bytes]:
        """Return the body of each frame that `data` completes and that passes its check."""
        bodies = []
        for stuffed in self._splitter.feed(data):
            try:
                frame = unstuff(stuffed)
            except StuffingError:
                frame = b""
            body, check = frame[:-CHECK_BYTES], frame[-CHECK_BYTES:]
            if not body:
                self._count("garbage_bytes", len(stuffed))
            elif crc32(body) != int.from_bytes(check, "little"):
                self._count("crc_errors", 1)
            else:
                bodies.append(body)
        return bodies


class LineDecoder:
    """Finds the lines in a stream; too long ones are counted."""

    def __init__(self, count: Count) -> None:
        self._splitter = Splitter(b"\n", LINE_MAX, count)
        self._high = 1
        """The place of the high byte of a character in UTF-16: 0 after a byte order mark."""

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that `data` completes, without line ends and empty lines.

        A line ends at a line feed, a carriage return, or both. A byte order mark is left out, and
        UTF-16 becomes UTF-8.
        """
        pieces = self._splitter.feed(data.replace(b"\r", b"\n"))
        lines = map(self._in_utf_8, pieces)
        return [line for line in lines if line.strip()]

    def _in_utf_8(self, line: bytes) -> bytes:
        """Return a line in UTF-8 if it is in UTF-16, which has a zero in most of its characters."""
        if b"\0" not in line:
            return line.removeprefix(BOM_UTF8)
        if line.startswith(BOM_UTF16_BE):
            self._high = 0
        # half of a line end is at the start of the next line, or at the end of its own
        odd = len(line) % 2
        body = line[odd:] if self._high else line[: len(line) - odd]
        zeros = body[self._high :: 2].count(0)
        if 4 * zeros < len(body) or zeros < 2:
            return line.strip(b"\0") and line
        encoding = "utf-16-le" if self._high else "utf-16-be"
        return body.decode(encoding, "replace").removeprefix("\ufeff").encode()

"""A running board's output: frames of readings, and text."""

import contextlib
import re
import termios
import time
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gateway.bridges.serial.frame_body import MalformedFrameError, ReadingsFrame, decode_frame
from gateway.bridges.serial.serial_frames import FrameDecoder
from gateway.counters import Counters
from gateway.flashing.port import Port, open_port, retried

if TYPE_CHECKING:
    from serial import Serial

TEXT_MAX = 4096
"""Bytes of text without a pause; the newest are stored."""

LINES_MAX = 200
"""Lines of text; the newest are stored."""

POLL_SECONDS = 0.1

COMPLAINTS = ("sensor_failures", "safe_mode")
"""Readings of a heartbeat whose node has not sampled, or not always."""

TEXT = re.compile(rb"[\t\r\n\x20-\x7e\x80-\xff]+")
"""No frame equals it: a frame's version is a byte 1."""


class Listener:
    """Receives a board's frames without acknowledging: the gateway gets them later."""

    def __init__(self, port: Port) -> None:
        self._serial: Serial = open_port(port, POLL_SECONDS)
        self._decoder = FrameDecoder(Counters().add)
        self._rest = b""
        self._text: deque[str] = deque(maxlen=LINES_MAX)

    def close(self) -> None:
        """Close the port."""
        self._serial.close()

    def send(self, data: bytes) -> None:
        """Send to the board."""
        self._serial.write(data)

    def frames(self, seconds: float | None) -> Iterator[ReadingsFrame | None]:
        """Yield the frames of readings of so many seconds, None when nothing came for a moment."""
        end = None if seconds is None else time.monotonic() + seconds
        while end is None or time.monotonic() < end:
            data = self._serial.read(self._serial.in_waiting or 1)
            if not data:
                yield None
            self._find_text(data)
            for body in self._decoder.feed(data):
                try:
                    frame = decode_frame(body)
                except MalformedFrameError:
                    continue
                if isinstance(frame, ReadingsFrame):
                    yield frame

    def take_text(self) -> list[str]:
        """Return the lines of text since the last call, such as a traceback."""
        lines = list(self._text)
        self._text.clear()
        return lines

    def _find_text(self, data: bytes) -> None:
        """Collect the text between frames; text ends without a zero, so a pause ends it too."""
        *pieces, rest = (self._rest + data).split(b"\0")
        self._rest = rest[-TEXT_MAX:]
        if not data:
            pieces, self._rest = [rest], b""
        for piece in pieces:
            if TEXT.fullmatch(piece):
                self._text.extend(filter(None, piece.decode(errors="replace").splitlines()))


def first_reading(port: Port, seconds: float) -> ReadingsFrame | None:
    """Return the first frame of a board after its reset, None if none comes.

    An `earlier` one shows that the program runs, but not that sensors answer: until the frames in
    its flash are acknowledged, a node sends nothing else. A USB board removes its port at a reset,
    perhaps after it was opened.
    """
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        try:
            with contextlib.closing(retried(lambda: Listener(port))) as listener:
                return next((each for each in listener.frames(left) if _is_well(each)), None)
        except (OSError, termios.error):
            continue
    return None


def _is_well(frame: ReadingsFrame | None) -> bool:
    """Return whether a frame shows no failure of the present start."""
    if frame is None:
        return False
    return frame.earlier or not any(each.quantity in COMPLAINTS for each in frame.readings)

"""What a board sends once its program runs: frames of readings, and text that is none."""

import re
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gateway.bridges.serial.frame_body import MalformedFrameError, ReadingsFrame, decode_readings
from gateway.bridges.serial.serial_frames import FrameDecoder
from gateway.counters import Counters
from gateway.flashing.port import open_port

if TYPE_CHECKING:
    from serial import Serial

TEXT_MAX = 4096
"""Bytes kept of what a board prints; the newest stay."""

POLL_SECONDS = 0.1
PRINTABLE = re.compile(rb"[\t\x20-\x7e]{3,}")


class Listener:
    """Hears a board without answering it: what is not acknowledged comes to the gateway later."""

    def __init__(self, port: str) -> None:
        self._serial: Serial = open_port(port, POLL_SECONDS)
        self._decoder = FrameDecoder(Counters())
        self._tail = b""

    def close(self) -> None:
        """Let go of the port."""
        self._serial.close()

    def frames(self, seconds: float | None) -> Iterator[ReadingsFrame | None]:
        """Give the frames of readings of so many seconds, None when nothing came for a moment."""
        end = None if seconds is None else time.monotonic() + seconds
        while end is None or time.monotonic() < end:
            data = self._serial.read(self._serial.in_waiting or 1)
            if not data:
                yield None
            self._tail = (self._tail + data)[-TEXT_MAX:]
            for body in self._decoder.feed(data):
                try:
                    frame = decode_readings(body)
                except MalformedFrameError:
                    continue
                if frame is not None:
                    yield frame

    def text(self) -> list[str]:
        """Return the lines of text among what came last, such as a traceback."""
        found = [line for piece in self._tail.split(b"\0") for line in PRINTABLE.findall(piece)]
        return [line.decode() for line in found]


def first_reading(listener: Listener, seconds: float) -> ReadingsFrame | None:
    """Return the first frame of readings, None if there is none in time."""
    return next((frame for frame in listener.frames(seconds) if frame is not None), None)

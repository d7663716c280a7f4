"""Whole packets taken apart by the framer."""

from gateway.mqtt.framing import Framer
from tests.support.frames import next_frame


def body_of(raw: bytes) -> tuple[int, bytes]:
    """Return the first byte and the body of the one packet that `raw` is."""
    framer = Framer(len(raw))
    framer.feed(raw)
    frame = next_frame(framer)
    assert frame is not None
    buffer, first_byte, start, end = frame
    assert end == len(raw)
    assert next_frame(framer) is None
    return first_byte, buffer[start:end]

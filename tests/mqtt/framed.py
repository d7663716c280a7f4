"""Whole packets taken apart by the framer."""

from gateway.mqtt.framing import Framer


def body_of(raw: bytes) -> tuple[int, bytes]:
    """Return the first byte and the body of the one packet that `raw` is."""
    framer = Framer(len(raw))
    framer.feed(raw)
    frame = framer.next_frame()
    assert frame is not None
    buffer, first_byte, start, end = frame
    assert end == len(raw)
    assert framer.next_frame() is None
    return first_byte, buffer[start:end]

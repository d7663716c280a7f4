"""The packets that a framer finds, as tuples."""

from gateway.mqtt.framing import Framer


def next_frame(framer: Framer) -> tuple[bytes, int, int, int] | None:
    """Return buffer, first byte, start and end of the body of the next packet, None without one."""
    first_byte = framer.next_frame()
    return (framer.buffer, first_byte, framer.body, framer.end) if first_byte else None

"""A PUBLISH that is too large for this side: its head is read, and the rest skipped."""

from gateway.mqtt.codec.fields import (
    read_binary,
    read_packet_identifier,
    read_variable_byte_integer,
)
from gateway.mqtt.codec.publish import QOS_SHIFT
from gateway.mqtt.packets import PacketType

HEAD_BYTES = 1 + 4 + 2 + 65_535 + 2
"""Bytes that are stored: up to its packet identifier, after the longest topic name."""

_QOS = 3


def is_publish(first_byte: int) -> bool:
    """Return whether a packet with this first byte is a PUBLISH."""
    return first_byte >> 4 == PacketType.PUBLISH


class OversizedPublish:
    """Such a PUBLISH, whose `start` was received, at least its remaining length.

    Only its head is ever in memory.
    """

    def __init__(self, start: bytes) -> None:
        length, self._body = read_variable_byte_integer(start, 1, len(start), "remaining length")
        self.size = self._body + length
        """Bytes of the packet."""
        self._head = b""
        self._remaining = self.size

    @property
    def over(self) -> bool:
        """Whether its last byte was received."""
        return not self._remaining

    def pass_by(self, data: bytes) -> bytes:
        """Skip its next bytes, from the first one on; return those after it."""
        own = data[: self._remaining]
        self._remaining -= len(own)
        self._head += own[: HEAD_BYTES - len(self._head)]
        return data[len(own) :]

    def head(self) -> tuple[str, int]:
        """Return its topic and its packet identifier, 0 at QoS 0.

        Raises MalformedPacket or ProtocolError if it has none.
        """
        head, end = self._head, len(self._head)
        topic, position = read_binary(head, self._body, end, "topic name")
        packet_id = 0
        if head[0] >> QOS_SHIFT & _QOS:
            packet_id, _ = read_packet_identifier(head, position, end)
        return topic.decode(errors="replace"), packet_id

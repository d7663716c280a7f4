"""Cuts a stream of bytes into packets (MQTT 5, section 2.1)."""

from gateway.mqtt.errors import MalformedPacket
from gateway.mqtt.reason_codes import ReasonCode

_LAST_SHIFT = 21  # a remaining length is four bytes of seven bits (section 2.1.4)


class Framer:
    """The packets of one connection, by position, in the bytes as they were received.

    A received chunk is itself the buffer while nothing is pending; of a packet that was split only
    its first part is copied. At most `maximum_packet_size` bytes and one chunk are kept, if
    `next_frame` is called until None after each `feed`.
    """

    __slots__ = ("_buffer", "_gathered", "_maximum_packet_size", "_missing", "_position", "_start")

    def __init__(self, maximum_packet_size: int) -> None:
        self._maximum_packet_size = maximum_packet_size
        self._buffer = b""
        self._position = 0
        self._start = 0  # of the last packet that was returned
        self._missing = 0  # bytes to come before there is anything new to see
        self._gathered: bytearray | None = None  # a packet that comes in many chunks, joined once

    def feed(self, data: bytes) -> None:
        """Take the bytes of one read."""
        if self._position == len(self._buffer):
            self._buffer = data
            self._position = 0
            self._missing = 0
        elif self._gathered is not None:
            self._gathered += data
            self._missing -= len(data)
        elif 0 < self._missing <= len(data):
            self._buffer += data
            self._missing = 0
        else:
            self._gathered = bytearray(self._buffer[self._position :])
            self._gathered += data
            self._missing -= len(data)

    @property
    def first_byte(self) -> int | None:
        """The first byte of the packet that is not whole yet; None while none has come."""
        gathered = self._gathered
        pending = self._buffer[self._position :] if gathered is None else gathered
        return pending[0] if pending else None

    def next_frame(self) -> tuple[bytes, int, int, int] | None:
        """Return (buffer, first byte, start of the body, end of the body) of the next packet.

        None while its last byte has not come. Raises MalformedPacket for a remaining length of
        more than four bytes and, with PACKET_TOO_LARGE, for a packet larger than the maximum, as
        soon as its header is there; nothing can be read behind either.
        """
        if self._gathered is not None:
            if self._missing > 0:
                return None
            self._join(self._gathered)
        buffer = self._buffer
        position = self._position
        if len(buffer) - position < 2:
            self._wait(1)
            return None
        length = buffer[position + 1]
        start = position + 2
        if length > 0x7F:
            length, start = _long_remaining_length(buffer, position + 1)
            if not start:
                self._wait(1)
                return None
        end = start + length
        if end - position > self._maximum_packet_size:  # [MQTT-3.2.2-15]
            raise MalformedPacket(
                f"a packet of {end - position} bytes; at most {self._maximum_packet_size}",
                ReasonCode.PACKET_TOO_LARGE,
            )
        if end > len(buffer):
            self._wait(end - len(buffer))
            return None
        self._start = position
        self._position = end
        return buffer, buffer[position], start, end

    @property
    def size(self) -> int:
        """The bytes of the packet that was returned last."""
        return self._position - self._start

    @property
    def shortest(self) -> bool:
        """Whether the remaining length of the packet that was returned last has its shortest form.

        MQTT 5 demands that of whoever sends it (section 1.5.5).
        """
        place = self._start + 1
        if self._buffer[place] < 0x80:
            return True
        while self._buffer[place] >= 0x80:
            place += 1
        return self._buffer[place] > 0

    def run(self, rest: int) -> tuple[bytes, int]:
        """Pass over the packets that are like the last one but for their last `rest` bytes.

        Returns the bytes of all of them, the last one included, and how many packets they are:
        1 when what follows is another packet, or not whole yet. The last packet was returned by
        `next_frame`, and nothing was fed since.
        """
        buffer, start, end = self._buffer, self._start, self._position
        alike = buffer[start : end - rest]
        size = end - start
        last = len(buffer) - size
        while end <= last and buffer.startswith(alike, end):
            end += size
        self._position = end
        return buffer[start:end], (end - start) // size

    def _wait(self, missing: int) -> None:
        """Keep only the tail, not the chunk it came in, which can be a thousand times larger."""
        self._buffer = self._buffer[self._position :]
        self._position = 0
        self._missing = missing

    def _join(self, gathered: bytearray) -> None:
        self._buffer = bytes(gathered)
        self._gathered = None
        self._position = 0
        self._missing = 0


def _long_remaining_length(buffer: bytes, position: int) -> tuple[int, int]:
    """Return the remaining length and the position behind it, (0, 0) while bytes are missing.

    A form longer than necessary is accepted: MQTT 3.1.1 does not forbid it.
    """
    value = shift = 0
    while position < len(buffer):
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        if shift == _LAST_SHIFT:
            raise MalformedPacket("a remaining length of more than 4 bytes")
        shift += 7
    return 0, 0

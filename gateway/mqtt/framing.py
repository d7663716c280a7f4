"""Cuts a stream of bytes into packets (MQTT 5, section 2.1)."""

from gateway.mqtt.errors import MalformedPacket
from gateway.mqtt.packet_run import PacketRun
from gateway.mqtt.reason_codes import ReasonCode
from gateway.mqtt.remaining_length import check_remaining_length

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

    def next_frame(self, version: int = 0) -> tuple[bytes, int, int, int] | None:
        """Return (buffer, first byte, start of the body, end of the body) of the next packet.

        None while its last byte has not come. Raises MalformedPacket for a remaining length of
        more than four bytes or, with PACKET_TOO_LARGE, for a packet larger than the maximum, as
        soon as its header is there; nothing can be read behind either. For a packet that is not
        whole it also raises what `check_remaining_length` does in this protocol version.
        """
        if self._gathered is not None:
            if self._missing > 0:
                return None
            self._join(self._gathered)
        buffer = self._buffer
        position = self._position
        if position == len(buffer):
            self._buffer = b""  # up to 256 KiB, which an idle connection should not hold
            self._position = 0
            return None
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
            check_remaining_length(buffer[position], length, version)  # don't wait for the rest
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

    def run(self, alike: bytes, least: int, largest: int, most: int) -> PacketRun:
        """Return the packets that have the same first byte as the last one and begin alike.

        `alike` is what the body of the last one begins with, which was returned by `next_frame`,
        is `shortest`, and nothing was fed since. The run ends before a packet that begins
        otherwise, or is not whole, or larger than `largest` or the maximum, or has a body of fewer
        bytes than `least`, or is not `shortest`, and with `most` packets, the last one included.
        `pass_over` takes them.
        """
        buffer, start, end = self._buffer, self._start, self._position
        size = end - start
        body = _body(buffer, start)[0] - start
        like = buffer[start : start + body + len(alike)]
        last = min(len(buffer) - size, start + (most - 1) * size)
        while end <= last and buffer.startswith(like, end):
            end += size
        count = (end - start) // size
        run = PacketRun(buffer[start:end], size, body)
        if (
            count < most
            and end < len(buffer)
            and buffer[end] == buffer[start]
            and buffer.startswith(alike, _body(buffer, end)[0])
        ):
            largest = min(largest, self._maximum_packet_size)
            self._lengthen(run, alike, least, largest, most)
        return run

    def _lengthen(self, run: PacketRun, alike: bytes, least: int, largest: int, most: int) -> None:
        """Add packets of other sizes to a run."""
        buffer, start = self._buffer, self._start
        first_byte = buffer[start]
        end = start + len(run.data)
        starts, bodies = list(run.starts), list(run.bodies)
        while len(starts) < most and end < len(buffer) and buffer[end] == first_byte:
            body, stop = _body(buffer, end)
            if stop > len(buffer) or stop - end > largest or stop - body < least:
                break
            if not buffer.startswith(alike, body):
                break
            starts.append(end - start)
            bodies.append(body - start)
            end = stop
        if len(starts) > run.count:
            run.differ(buffer[start:end], starts, bodies)

    def like(self, first_byte: int, alike: bytes, least: int = 0) -> int:
        """Return the bytes of the next packet if it has this first byte and its body begins alike.

        0 if it does not, if its body has fewer bytes than `least`, and where `next_frame` has to
        say what is the matter with it. `skip` takes it, as if it had been returned.
        """
        buffer, position = self._buffer, self._position
        if self._gathered is not None or position == len(buffer) or buffer[position] != first_byte:
            return 0
        body, end = _body(buffer, position)
        size = end - position
        if end > len(buffer) or size > self._maximum_packet_size or end - body < least:
            return 0
        return size if body and buffer.startswith(alike, body, end) else 0

    def take_like(self, first_byte: int) -> tuple[bytes, int, int] | None:
        """Take the next packet if it has this first byte.

        Returns the buffer, and where its body starts and ends, as `next_frame` would. None, with
        nothing taken, where `like` would return 0; `pass_over(0)` gives it back.
        """
        buffer, position = self._buffer, self._position
        if self._gathered is not None or position == len(buffer) or buffer[position] != first_byte:
            return None
        body, end = _body(buffer, position)
        if not body or end > len(buffer) or end - position > self._maximum_packet_size:
            return None
        self._start = position
        self._position = end
        return buffer, body, end

    def alone(self, data: bytes, first_byte: int, alike: bytes) -> int:
        """Return how many bytes stand behind `alike` if `data` is such a packet and nothing else.

        -1 if it is not, is above the maximum, or is not to be looked at before what came earlier.
        """
        if self._buffer or self._gathered is not None or data[0] != first_byte:
            return -1
        size = len(data)
        if size < 2 or size > self._maximum_packet_size:
            return -1
        body, length = 2, data[1]
        if length > 0x7F:
            body, end = _body(data, 0)
            if end != size:
                return -1
        elif length != size - body:
            return -1
        return size - body - len(alike) if data.startswith(alike, body) else -1

    def pass_over(self, size: int) -> None:
        """Go on behind `size` bytes from the start of the packet that was returned last."""
        self._position = self._start + size

    def look_ahead(self, size: int) -> bytes:
        """Return the next bytes, at most `size`, with which no packet has begun to be gathered."""
        return b"" if self._gathered else self._buffer[self._position : self._position + size]

    def skip(self, size: int) -> None:
        """Take `size` of the bytes that `look_ahead` returned: they are whole packets."""
        self._start = self._position
        self._position += size

    def idle(self) -> bool:
        """Return whether everything that came has been returned."""
        return not self._buffer and self._gathered is None

    @property
    def next_byte(self) -> int:
        """The first byte of the next packet if it has come in one piece so far, otherwise 0."""
        if self._gathered or self._position == len(self._buffer):
            return 0
        return self._buffer[self._position]

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


def _body(buffer: bytes, position: int) -> tuple[int, int]:
    """Return start and end of the body of the packet at this position.

    (0, 0) while its header is not whole, or if its remaining length is not in its shortest form or
    malformed: `next_frame` says so when it is that packet's turn.
    """
    body = position + 2
    if body > len(buffer):
        return 0, 0
    length = buffer[position + 1]
    if length > 0x7F:
        try:
            length, body = _long_remaining_length(buffer, position + 1)
        except MalformedPacket:
            return 0, 0
        if not body or length >> 7 * (body - position - 2) == 0:
            return 0, 0
    return body, body + length


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

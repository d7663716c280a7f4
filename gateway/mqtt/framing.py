"""Splits a stream of bytes into packets (MQTT 5, section 2.1)."""

from collections.abc import Callable

from gateway.mqtt.codec.packet_codec import check_first_byte, check_first_packet, reserved
from gateway.mqtt.codec.remaining_length import check_remaining_length
from gateway.mqtt.errors import MalformedPacket
from gateway.mqtt.publication import PacketBatch
from gateway.mqtt.reason_codes import ReasonCode

SameRoute = Callable[[bytes], bool]
"""Returns for a topic name, after its length, whether its messages have the same route."""

ANY_VERSION = -1
"""A protocol version with which a packet may begin with any byte but 0."""

_LAST_SHIFT = 21  # a remaining length is four bytes of seven bits (section 2.1.4)
_QOS = 0x06  # the bits of a PUBLISH's first byte that hold the QoS


class Framer:
    """The packets of one connection, by position in the received bytes.

    A received chunk is itself the buffer while nothing is pending; of a packet in several chunks
    only the first part is copied. At most `maximum_packet_size` bytes and one chunk are held, if
    `next_frame` is called until 0 after each `feed`, or `clear` once `position`, where the next
    packet starts, is the end. Its last packet starts at `start` of the `buffer` with its
    `first_byte`, and has the body `buffer[body:end]`.
    """

    __slots__ = (
        "_chunks",
        "_missing",
        "body",
        "buffer",
        "end",
        "first_byte",
        "maximum_packet_size",
        "position",
        "start",
    )

    def __init__(self, maximum_packet_size: int) -> None:
        self.maximum_packet_size = maximum_packet_size
        self.buffer = b""
        self.position = 0
        self.first_byte = self.start = self.body = self.end = 0
        self._missing = 0  # bytes that must arrive before `next_frame` can find anything new
        self._chunks: bytearray | None = None  # a packet in many chunks, joined once

    def feed(self, data: bytes) -> None:
        """Add the bytes of one read."""
        if self.position == len(self.buffer):
            self.buffer = data
            self.position = 0
            self._missing = 0
        elif self._chunks is not None:
            self._chunks += data
            self._missing -= len(data)
        # the packet ends in this chunk: a single copy joins it
        elif 0 < self._missing <= len(data):
            self.buffer += data
            self._missing = 0
        else:
            self._chunks = bytearray(self.buffer[self.position :])
            self._chunks += data
            self._missing -= len(data)

    @property
    def held(self) -> int:
        """Bytes that are held: packets not returned yet, and a part of the next."""
        if self._chunks is not None:
            return len(self._chunks) * 9 // 8  # with its spare capacity
        return len(self.buffer) if self.position < len(self.buffer) else 0

    @property
    def next_first_byte(self) -> int:
        """The first byte of the next packet, or of a part of it; 0 for nothing."""
        chunks = self._chunks
        if chunks is not None:
            return chunks[0]
        return self.buffer[self.position] if self.position < len(self.buffer) else 0

    def next_frame(self, version: int = ANY_VERSION) -> int:
        """Find the next packet and return its first byte, 0 while it is incomplete.

        Raises MalformedPacket for a remaining length of more than four bytes. Raises it with
        PACKET_TOO_LARGE for a packet above the maximum, as soon as its header is there. The stream
        cannot be read beyond either. Before these, it raises what `check_first_byte` does in this
        protocol version, and for an incomplete packet what `check_remaining_length` does. With
        ANY_VERSION only the first byte 0 is wrong.
        """
        if self._chunks is not None:
            if self._missing > 0:
                return 0
            self._join(self._chunks)
        buffer = self.buffer
        position = self.position
        left = len(buffer) - position
        if left < 2:
            if left:
                self._wait(1, version)
            else:  # as `clear`
                self.buffer = b""
                self.position = 0
            return 0
        length = buffer[position + 1]
        body = position + 2
        if length > 0x7F:
            try:
                length, body = _long_remaining_length(buffer, position + 1)
            except MalformedPacket:
                _check(buffer[position], version)
                raise
            if not body:
                self._wait(1, version)
                return 0
        end = body + length
        size = end - position
        if size > self.maximum_packet_size:  # [MQTT-3.2.2-15]
            _check(buffer[position], version)
            raise MalformedPacket(
                f"a packet of {size} bytes; at most {self.maximum_packet_size}",
                ReasonCode.PACKET_TOO_LARGE,
            )
        if size > left:  # a wrong header is reported without waiting for the body
            check_remaining_length(buffer[position], length, max(version, 0))
            self._wait(size - left, version)
            return 0
        self.start = position
        self.body = body
        self.position = self.end = end
        self.first_byte = first_byte = buffer[position]
        if not first_byte:
            _check(first_byte, version)  # raises
        return first_byte

    def clear(self) -> None:
        """Forget what was returned: up to 256 KiB, which an idle connection should not hold."""
        self.buffer = b""
        self.position = 0

    def extend(
        self,
        batch: PacketBatch,
        most: int,
        most_bytes: int,
        properties: bytes = b"",
        same_route: SameRoute | None = None,
    ) -> bool:
        """Add similar packets to a batch that holds only the last packet returned.

        They have the same first byte and `properties`, which is the whole block with its length,
        and the same topic name or one of the `same_route`. They are complete; `most` and
        `most_bytes` include the first. They count as returned. Returns whether their topic names
        differ.
        """
        buffer, start, end = self.buffer, self.start, self.position
        size = batch.size
        like = buffer[start : start + batch.body + batch.identifier]
        following = properties if buffer[start] & _QOS else b""  # after the packet identifier
        skip = len(like) + 2
        last = min(len(buffer), start + most * size, start + most_bytes) - size
        while (
            end <= last
            and buffer.startswith(like, end)
            and (not following or buffer.startswith(following, end + skip))
        ):
            end += size
        count = (end - start) // size
        if count > 1:
            # one slice for all of them: equal sizes need no list of positions
            batch.replace_data(buffer[start:end])
            self.position = end
        if count < most and end < len(buffer) and buffer[end] == buffer[start]:
            return self._extend_uneven(batch, most, most_bytes, properties, same_route)
        return False

    def _extend_uneven(
        self,
        batch: PacketBatch,
        most: int,
        most_bytes: int,
        properties: bytes,
        same_route: SameRoute | None,
    ) -> bool:
        """Add packets of other sizes or with other topic names."""
        buffer, start, end = self.buffer, self.start, self.position
        first_byte, largest = buffer[start], batch.size
        # between topic name and payload
        between = len(properties) + (2 if first_byte & _QOS else 0)
        payload = start + batch.body + batch.payload
        name = buffer[start + batch.body : payload - between]
        starts, offsets, differ = list(batch.starts), list(batch.offsets), False
        count, longest, limit = len(starts), self.maximum_packet_size, len(buffer)
        limit = min(limit, start + most_bytes)
        while count < most and end + 1 < limit and buffer[end] == first_byte:
            body = end + 2
            stop = body + buffer[end + 1]
            # the length takes more than one byte
            if stop > body + 0x7F:
                body, stop = _body(buffer, end)
            # too short for a topic name
            if stop > limit or stop - end > longest or stop - body < 2:
                break
            size = 2 + (buffer[body] << 8 | buffer[body + 1])
            payload = body + size + between
            if payload > stop or not buffer.startswith(properties, payload - len(properties)):
                break
            if not buffer.startswith(name, body):
                name = buffer[body : body + size]
                if same_route is None or not same_route(name):
                    break
                differ = True
            starts.append(end - start)
            offsets.append(payload - start)
            count += 1
            largest = max(largest, stop - end)
            end = stop
        if count > batch.count:
            batch.extend(buffer[start:end], starts, offsets, largest)
            self.position = end
        return differ

    def pop_rest(self) -> bytes:
        """Return and forget what was received after the last packet returned.

        After `next_frame` has found a packet too large, that packet comes first.
        """
        rest = self.buffer[self.position :]
        self.buffer = b""
        self.position = self._missing = 0
        return rest

    def last_bytes(self, size: int) -> bytes:
        """Return at most `size` bytes from the start of the last packet returned."""
        return self.buffer[self.start : self.start + size]

    def go_on(self, size: int) -> None:
        """Count this many bytes from the start of the last packet as returned."""
        self.position = self.start + size

    def _wait(self, missing: int, version: int) -> None:
        """Hold only the tail, not its chunk, which can be a thousand times larger."""
        first_byte = self.buffer[self.position]
        self.buffer = self.buffer[self.position :]
        self.position = 0
        self._missing = missing
        if not version:
            check_first_packet(first_byte, self.buffer)
        _check(first_byte, version)  # reject HTTP, for example, without waiting for more

    def _join(self, chunks: bytearray) -> None:
        self.buffer = bytes(chunks)
        self._chunks = None
        self.position = 0
        self._missing = 0


def _check(first_byte: int, version: int) -> None:
    """Raise MqttError if no packet of this protocol version can begin with this byte."""
    if version != ANY_VERSION:
        check_first_byte(first_byte, version)
    elif not first_byte:
        raise reserved(first_byte)


def _body(buffer: bytes, position: int) -> tuple[int, int]:
    """Return start and end of a packet's body whose length takes several bytes.

    (0, 0) if its header is incomplete, or its remaining length is malformed or not in its shortest
    form: `next_frame` reports that when the packet is handled.
    """
    try:
        length, body = _long_remaining_length(buffer, position + 1)
    except MalformedPacket:
        return 0, 0
    if not body or length >> 7 * (body - position - 2) == 0:
        return 0, 0
    return body, body + length


def _long_remaining_length(buffer: bytes, position: int) -> tuple[int, int]:
    """Return the remaining length and the position after it, (0, 0) while bytes are missing.

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

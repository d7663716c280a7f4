"""PUBLISH packets that stand one behind the other and differ in topic name, number and payload."""

from collections.abc import Sequence
from typing import Final

NOT_LISTED: Final[list[int]] = []
"""Stands for the lists of a batch whose packets are all as long."""

HIGH: Final = b"".join(bytes((high,)) * 256 for high in range(256))
"""The high bytes of all packet identifiers, in order."""

LOW: Final = bytes(range(256)) * 256
"""Their low bytes."""

# Compiled, these are C names that no other module sees.
_HIGH = HIGH
_LOW = LOW


class PacketBatch:
    """The bytes of `count` packets, and where each and its payload start there.

    Where all are as long, and have one topic name, that is `size`: their bodies start `body` bytes
    behind their own start, in each body the packet identifier, if there is one, stands at
    `identifier`, and the payload begins at `payload`. Otherwise `size` is 0; then too the packet
    identifier stands as far before the payload. `largest` is the size of the largest packet,
    `payloads` the bytes of all payloads.
    """

    __slots__ = (
        "_offsets",
        "_starts",
        "body",
        "count",
        "data",
        "identifier",
        "largest",
        "payload",
        "payloads",
        "size",
    )

    def __init__(self, data: bytes, size: int, body: int, identifier: int, payload: int) -> None:
        self.data = data
        self.size = self.largest = size
        self.body = body
        self.identifier = identifier
        self.payload = payload
        self.count = count = len(data) // size
        self.payloads = count * (size - body - payload)
        self._starts = NOT_LISTED  # listing them would be a tenth of all the work
        self._offsets = NOT_LISTED

    def extend(self, data: bytes, starts: list[int], offsets: list[int], largest: int) -> None:
        """Become these packets, whose payloads begin at `offsets`."""
        self.data, self._starts, self._offsets = data, starts, offsets
        self.count = len(starts)
        self.size = 0
        self.largest = largest
        self.payloads = self.payload_bytes(0, self.count)

    def take_even(self, data: bytes) -> None:
        """Become these packets, all as long as those before."""
        self.data = data
        self.count = count = len(data) // self.size
        self.payloads = count * (self.size - self.body - self.payload)

    def shorten(self, count: int) -> None:
        """Keep the first `count` packets alone."""
        data = self.data[: self.start(count)]
        if self.size:
            self.take_even(data)
        else:
            self.extend(data, self._starts[:count], self._offsets[:count], self.largest)

    @property
    def starts(self) -> Sequence[int]:
        """Where each packet starts."""
        return range(0, len(self.data), self.size) if self.size else self._starts

    @property
    def offsets(self) -> Sequence[int]:
        """Where the payload of each packet begins."""
        if self.size:
            offset = self.body + self.payload
            return range(offset, offset + len(self.data), self.size)
        return self._offsets

    def start(self, number: int) -> int:
        """Return where the packet with this number, from 0, starts; behind the last, the end."""
        if self.size:
            return number * self.size
        return self._starts[number] if number < self.count else len(self.data)

    def payload_bytes(self, first: int, count: int) -> int:
        """Return the bytes of so many payloads, from number `first` on."""
        if self.size:
            return count * (self.size - self.body - self.payload)
        end = first + count
        heads = sum(self._offsets[first:end]) - sum(self._starts[first:end])
        return self.start(end) - self.start(first) - heads

    def one(self, number: int) -> bytes:
        """Return the payload of the packet with this number, from 0."""
        size = self.size
        offset = number * size + self.body + self.payload if size else self._offsets[number]
        return self.data[offset : self.start(number + 1)]

    def topic_name(self, number: int) -> bytes:
        """Return the topic name of the packet with this number, behind its length."""
        data = self.data
        start = body_start(data, self.start(number))
        return data[start : start + 2 + (data[start] << 8 | data[start + 1])]

    def identifiers(self) -> Sequence[int]:
        """Return the packet identifiers, as a range where each is one more than that before."""
        offset = self.body + self.identifier
        data = self.data
        if self.count == 1:
            return (data[offset] << 8 | data[offset + 1],)
        if self.size:
            return packet_ids(data[offset :: self.size], data[offset + 1 :: self.size])
        back = self.payload - self.identifier
        offsets = [offset - back for offset in self._offsets]
        high = bytes([data[offset] for offset in offsets])
        return packet_ids(high, bytes([data[offset + 1] for offset in offsets]))

    def slice(self, first: int, count: int) -> bytes:
        """Return the bytes of so many packets, from number `first` on."""
        return self.data[self.start(first) : self.start(first + count)]

    def numbered(self, first: int, count: int, packet_id: int) -> bytearray:
        """Return these packets with packet identifiers from `packet_id` on."""
        data = bytearray(self.data if count == self.count else self.slice(first, count))
        size, offset = self.size, self.body + self.identifier
        if size:
            if count == 1:
                data[offset] = packet_id >> 8
                data[offset + 1] = packet_id & 0xFF
            else:
                data[offset::size] = _HIGH[packet_id : packet_id + count]
                data[offset + 1 :: size] = _LOW[packet_id : packet_id + count]
            return data
        back = self._starts[first] + self.payload - self.identifier
        for offset in self._offsets[first : first + count]:
            data[offset - back] = packet_id >> 8
            data[offset - back + 1] = packet_id & 0xFF
            packet_id += 1
        return data

    def part(self, first: int, count: int) -> "PacketBatch":
        """Return so many packets, from number `first` on, as a batch of their own."""
        data = self.slice(first, count)
        if self.size:
            return PacketBatch(data, self.size, self.body, self.identifier, self.payload)
        end, start = first + count, self._starts[first]
        starts = [offset - start for offset in self._starts[first:end]]
        offsets = [offset - start for offset in self._offsets[first:end]]
        return uneven_batch(data, starts, offsets, self.payload - self.identifier)


def uneven_batch(data: bytes, starts: list[int], offsets: list[int], back: int) -> PacketBatch:
    """Return packets that need not all be as long, with these payloads.

    The packet identifiers stand `back` bytes before them.
    """
    body = body_start(data, 0)
    payload = offsets[0] - body
    batch = PacketBatch(data, len(data), body, payload - back, payload)
    if len(starts) > 1:
        ends = [*starts[1:], len(data)]
        largest = max([end - start for start, end in zip(starts, ends, strict=True)])
        batch.extend(data, starts, offsets, largest)
    return batch


def body_start(data: bytes, start: int) -> int:
    """Return where the body of the packet begins that starts there, and is well-formed."""
    start += 1
    while data[start] > 0x7F:
        start += 1
    return start + 1


def packet_ids(high: bytes, low: bytes) -> Sequence[int]:
    """Return the packet identifiers, at least one, that have these high and low bytes.

    A range, of one step, if each is one more than that before.
    """
    first = high[0] << 8 | low[0]
    end = first + len(high)
    if high == _HIGH[first:end] and low == _LOW[first:end]:
        return range(first, end)
    return tuple([upper << 8 | lower for upper, lower in zip(high, low, strict=True)])

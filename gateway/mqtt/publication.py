"""Application messages that arrived together: their PUBLISH packets and common attributes."""

from bisect import bisect_left
from collections.abc import Sequence
from functools import partial
from typing import Final

from gateway.mqtt.codec.publish import PublishProperties
from gateway.mqtt.message import Message
from gateway.mqtt.output import Barrier
from gateway.mqtt.packets import MESSAGE_OVERHEAD

_MESSAGE_OVERHEAD = MESSAGE_OVERHEAD  # compiled, a C name that no other module sees

NO_TOPIC: Final = ""

NO_BYTES: Final = bytearray()
"""Plus bytes, a copy to write to: half the time of `bytearray(data)`."""

NOT_LISTED: Final[list[int]] = []
"""Replaces the lists of a batch whose packets have equal sizes."""

_HIGH = b""
_LOW = b""
"""The high and the low bytes of all packet identifiers in order, 128 KiB, once a batch needed them.
Compiled, these are C names that no other module sees."""


def _list_identifiers() -> None:
    global _HIGH, _LOW  # noqa: PLW0603 - made once
    _HIGH = b"".join([bytes((high,)) * 256 for high in range(256)])
    _LOW = bytes(range(256)) * 256


class PacketBatch:
    """The bytes of `count` packets, and the positions of each packet and payload.

    If all have equal sizes and one topic name, `size` is that size. Then each body starts `body`
    bytes after its packet's start, with the packet identifier, if any, at `identifier` and the
    payload at `payload`. Otherwise `size` is 0; then too the packet identifier has the same
    distance from the payload. `largest` is the size of the largest packet, `payloads` the bytes of
    all payloads.
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
        self.fill(data, size, body, identifier, payload)

    def fill(self, data: bytes, size: int, body: int, identifier: int, payload: int) -> None:
        """Set every attribute; after `__new__` it takes half the time of the constructor."""
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

    def replace_data(self, data: bytes) -> None:
        """Become these packets, of the same size as before."""
        self.data = data
        self.count = count = len(data) // self.size
        self.payloads = count * (self.size - self.body - self.payload)

    def shorten(self, count: int) -> None:
        """Drop all but the first `count` packets."""
        data = self.data[: self.start(count)]
        if self.size:
            self.replace_data(data)
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
        """Return where the packet with this number, from 0, starts; after the last, the end."""
        if self.size:
            return number * self.size
        return self._starts[number] if number < self.count else len(self.data)

    def payload_bytes(self, first: int, count: int) -> int:
        """Return the bytes of these payloads, from number `first` on."""
        if self.size:
            return count * (self.size - self.body - self.payload)
        end = first + count
        heads = sum(self._offsets[first:end]) - sum(self._starts[first:end])
        return self.start(end) - self.start(first) - heads

    def one(self, number: int) -> bytes:
        """Return the payload of the packet with this number, from 0."""
        size = self.size
        if size:
            offset = number * size
            return self.data[offset + self.body + self.payload : offset + size]
        return self.data[self._offsets[number] : self.start(number + 1)]

    def topic_name(self, number: int) -> bytes:
        """Return the topic name of the packet with this number, after its length."""
        data = self.data
        start = body_start(data, self.start(number))
        return data[start : start + 2 + (data[start] << 8 | data[start + 1])]

    def identifiers(self) -> Sequence[int]:
        """Return the packet identifiers, as a range if they are consecutive."""
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
        """Return the bytes of these packets, from number `first` on."""
        return self.data[self.start(first) : self.start(first + count)]

    def numbered(self, first: int, count: int, packet_id: int) -> bytearray:
        """Return these packets with packet identifiers from `packet_id` on."""
        data = NO_BYTES + (self.data if count == self.count else self.slice(first, count))
        size, offset = self.size, self.body + self.identifier
        if size:
            if count == 1:
                one = data  # compiled, a bytearray; a slice of bytes cannot be set in one
                one[offset] = packet_id >> 8
                one[offset + 1] = packet_id & 0xFF
            else:
                if not _HIGH:
                    _list_identifiers()
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
        """Return these packets, from number `first` on, as another batch."""
        data = self.slice(first, count)
        if self.size:
            return PacketBatch(data, self.size, self.body, self.identifier, self.payload)
        end, start = first + count, self._starts[first]
        starts = [offset - start for offset in self._starts[first:end]]
        offsets = [offset - start for offset in self._offsets[first:end]]
        return uneven_batch(data, starts, offsets, self.payload - self.identifier)


def uneven_batch(data: bytes, starts: list[int], offsets: list[int], back: int) -> PacketBatch:
    """Return packets of any sizes, with these payloads.

    The packet identifiers are `back` bytes before them.
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
    """Return where the body of the well-formed packet begins that starts there."""
    start += 1
    while data[start] > 0x7F:
        start += 1
    return start + 1


def packet_ids(high: bytes, low: bytes) -> Sequence[int]:
    """Return the packet identifiers, at least one, with these high and low bytes.

    A range, with a step of one, if they are consecutive.
    """
    first = high[0] << 8 | low[0]
    end = first + len(high)
    if not _HIGH:
        _list_identifiers()
    if high == _HIGH[first:end] and low == _LOW[first:end]:
        return range(first, end)
    return tuple([upper << 8 | lower for upper, lower in zip(high, low, strict=True)])


class Publication:
    """1 to n messages of one publisher, QoS and RETAIN, with the same properties and destinations.

    `packets` are their PUBLISH packets, for MQTT 5 if `mqtt5`, in the form in which they are
    forwarded unchanged: with topic names, without DUP and topic alias. `topic` is that of the
    first, `topic_name` the same in UTF-8 after its length; others may differ if they are `mixed`.
    `received_at` is wall time in milliseconds since 1970, `arrived` monotonic seconds of the same
    moment. `commit_within` is the durability class: the seconds by which a commit may be delayed,
    None for messages that are only in memory. `barrier` is what the publisher's answer may wait
    for, set during delivery.
    """

    __slots__ = (
        "arrived",
        "barrier",
        "client_id",
        "commit_within",
        "first_byte",
        "forms",
        "holders",
        "messages",
        "mixed",
        "mqtt5",
        "packet_id",
        "packets",
        "properties",
        "qos",
        "received_at",
        "receivers",
        "retain",
        "row",
        "serial",
        "shared",
        "stored_for",
        "topic",
        "topic_name",
        "username",
    )

    def __init__(
        self,
        packets: PacketBatch,
        first_byte: int,
        mqtt5: bool,
        topic_name: bytes,
        properties: PublishProperties,
    ) -> None:
        self.fill(packets, first_byte, mqtt5, topic_name, properties)

    def fill(
        self,
        packets: PacketBatch,
        first_byte: int,
        mqtt5: bool,
        topic_name: bytes,
        properties: PublishProperties,
    ) -> None:
        """Set every attribute; after `__new__` it takes half the time of the constructor."""
        self.packets = packets
        self.first_byte = first_byte
        self.mqtt5 = mqtt5
        self.topic_name = topic_name
        self.properties = properties
        self.qos = first_byte >> 1 & 3
        self.retain = bool(first_byte & 1)
        self.topic = NO_TOPIC
        self.mixed = False
        # without its packet identifier, if its packet was encoded again
        self.packet_id: int | None = None
        self.client_id: str | None = None
        self.username: str | None = None
        self.received_at: int | None = None
        self.arrived = 0.0
        self.commit_within: float | None = 0.0
        self.barrier: Barrier | None = None
        self.receivers = 1
        self.holders = 0
        self.stored_for = 0
        self.row = 0
        self.serial = 0  # names messages of channels that are not stored
        self.shared = False
        # shared by receivers during delivery: see `publish_encoder.form`
        self.forms: dict[int, PacketBatch] | None = None
        # message objects, made by `message`
        self.messages: list[Message | None] | None = None

    def identifiers(self) -> Sequence[int]:
        """Return the packet identifiers of the received messages, at QoS 1 and 2."""
        if self.packet_id is not None:
            return (self.packet_id,)
        return self.packets.identifiers()

    def name_of(self, number: int) -> bytes:
        """Return the topic name of the message with this number, after its length."""
        return self.packets.topic_name(number) if self.mixed else self.topic_name

    def topic_of(self, number: int) -> str:
        """Return its topic."""
        return self.packets.topic_name(number)[2:].decode() if self.mixed else self.topic

    @property
    def count(self) -> int:
        """How many messages there are."""
        return self.packets.count

    def size(self, first: int, count: int) -> int:
        """Return the bytes of memory of these messages, from number `first` on."""
        packets = self.packets
        if packets.size:
            return count * (packets.size + _MESSAGE_OVERHEAD)
        return packets.start(first + count) - packets.start(first) + count * _MESSAGE_OVERHEAD

    def fitting(self, first: int, most: int, capacity: int) -> int:
        """Return how many messages from `first` on, at most `most`, fit into `capacity` bytes.

        The last may exceed them; none fits if `capacity` is 0.
        """
        packets = self.packets
        if packets.size:
            each = packets.size + _MESSAGE_OVERHEAD
            return max(0, min(most, -(-capacity // each)))
        if self.size(first, most) <= capacity:  # nearly always
            return most
        counts = range(most + 1)
        return min(most, bisect_left(counts, capacity, key=partial(self.size, first)))

    def expired(self, now: float) -> bool:
        """Return whether the Message Expiry Interval has passed at second `now` [MQTT-3.3.2-5]."""
        expiry = self.properties.expiry
        return expiry is not None and self.arrived + expiry <= now

    def share_forms(self) -> None:
        """Cache every form that is made from now on, for all receivers."""
        self.forms = {}

    def message(self, number: int) -> Message:
        """Return the message with this number, from 0: the same object each time."""
        if self.messages is None:
            self.messages = [None] * self.packets.count
        message = self.messages[number]
        if message is None:
            message = self.messages[number] = self.new_message(number)
        return message

    def new_message(self, number: int) -> Message:
        """Return the message with this number as a new object."""
        message = Message(
            self.topic_of(number) if self.mixed else self.topic,
            self.packets.one(number),
            self.qos,
            self.retain,
            client_id=self.client_id,
            username=self.username,
            received_at=self.received_at,
            arrived=self.arrived,
        )
        message.commit_within = self.commit_within
        message.barrier = self.barrier
        if self.properties.data or self.properties.expiry is not None:
            message.set_properties(self.properties.fields)
        return message

    def one(self, number: int) -> "Publication":
        """Return the message with this number as another publication."""
        return self if self.packets.count == 1 else self.part(number, 1)

    def copy(self) -> "Publication":
        """Return all messages as another publication, without receivers."""
        return self.part(0, self.packets.count)

    def part(self, first: int, count: int) -> "Publication":
        """Return these messages, from number `first` on, as another publication."""
        packets = self.packets.part(first, count)
        name = self.name_of(first)
        part = Publication(packets, self.first_byte, self.mqtt5, name, self.properties)
        part.topic = self.topic_of(first)
        part.mixed = self.mixed and count > 1
        part.client_id = self.client_id
        part.username = self.username
        part.received_at = self.received_at
        part.arrived = self.arrived
        part.commit_within = self.commit_within
        return part

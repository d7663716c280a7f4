"""PUBLISH packets with a packet identifier that came one behind the other and are alike."""

from collections.abc import Sequence

from gateway.mqtt.packet_run import NOT_LISTED, PacketRun
from gateway.mqtt.publish_form import behind_topic

HIGH = b"".join(bytes((high,)) * 256 for high in range(256))
"""The high bytes of all packet identifiers, in order."""

LOW = bytes(range(256)) * 256
"""Their low bytes."""


def packet_ids(high: bytes, low: bytes) -> Sequence[int]:
    """Return the packet identifiers, at least one, that have these high and low bytes.

    A range, of one step, if each is one more than that before.
    """
    first = high[0] << 8 | low[0]
    end = first + len(high)
    if high == HIGH[first:end] and low == LOW[first:end]:
        return range(first, end)
    return tuple([upper << 8 | lower for upper, lower in zip(high, low, strict=True)])


class PublishRun:
    """QoS 1 or 2 packets of one topic that differ in packet identifier and payload alone.

    `packets` holds `count` of them, whose payloads begin `payload` bytes behind the start of
    their bodies; `high` and `low` are the bytes of their packet identifiers.
    """

    __slots__ = ("_place", "_places", "count", "high", "low", "packets", "payload", "payload_bytes")

    def __init__(self, packets: PacketRun, topic: int, *, properties: bool) -> None:
        """Take PUBLISHes whose topic name takes `topic` bytes at the start of each body.

        In MQTT 5 a byte says that there are no `properties`.
        """
        self.packets = packets
        self.payload = topic + behind_topic(1, properties)
        self.count = packets.count
        data, size = packets.data, packets.size
        self._place = first = packets.body + topic  # of the first packet identifier
        self._places = NOT_LISTED  # of all, where the packets are not all as long
        if size:
            self.high = data[first::size]
            self.low = data[first + 1 :: size]
        else:
            self._places = places = [body + topic for body in packets.bodies]
            self.high = bytes([data[place] for place in places])
            self.low = bytes([data[place + 1] for place in places])
        self.payload_bytes = packets.bytes_behind(self.payload)

    def numbered(self, first: int) -> bytearray:
        """Return the packets with the packet identifiers from `first` on."""
        packets = self.packets
        data, size = bytearray(packets.data), packets.size
        high, low = HIGH[first : first + self.count], LOW[first : first + self.count]
        if size:
            data[self._place :: size] = high
            data[self._place + 1 :: size] = low
        else:
            for place, upper, lower in zip(self._places, high, low, strict=True):
                data[place] = upper
                data[place + 1] = lower
        return data

    def one(self, number: int) -> bytes:
        """Return the payload of the packet with this number, from 0."""
        packets = self.packets
        end = len(packets.data) if number + 1 == self.count else packets.starts[number + 1]
        return packets.data[packets.bodies[number] + self.payload : end]

    @property
    def packet_ids(self) -> Sequence[int]:
        """The packet identifiers, in order."""
        return packet_ids(self.high, self.low)


def publish_run(packets: PacketRun, topic: int, properties: bool) -> PublishRun | None:
    """Return as many of the packets as are PUBLISHes without properties, from the first on.

    Their bodies begin with the same topic name, which takes `topic` bytes, and have what stands
    behind it. The packet identifier 0 is an error [MQTT-2.2.1-3]. None if the first is none.
    """
    run = PublishRun(packets, topic, properties=properties)
    count = run.count
    if properties:
        data, place = packets.data, topic + 2
        if packets.size:
            marks = data[packets.body + place :: packets.size]
        else:
            marks = bytes([data[body + place] for body in packets.bodies])
        count -= len(marks.lstrip(b"\0"))
    if 0 in run.high and 0 in run.low:
        numbers = list(run.packet_ids)
        if 0 in numbers:
            count = min(count, numbers.index(0))
    if count == run.count:
        return run
    if not count:
        return None
    return PublishRun(packets.part(0, count), topic, properties=properties)


def publish_alone(data: bytes, rest: int, topic: int, properties: bool) -> PublishRun | None:
    """Return the packet that `data` is, with `rest` bytes behind its topic name, as such a run.

    Otherwise this is as with `publish_run`; None too if there is not enough `rest`.
    """
    if rest < behind_topic(1, properties):
        return None
    return publish_run(PacketRun(data, len(data), len(data) - rest - topic), topic, properties)

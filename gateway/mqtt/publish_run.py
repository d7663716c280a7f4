"""PUBLISH packets with a packet identifier that came one behind the other and are alike."""

import struct
from collections.abc import Sequence

from gateway.mqtt.framing import PacketRun


def two_bytes(first: int, count: int) -> tuple[bytes, bytes]:
    """Return the high and the low bytes of `count` packet identifiers that follow one another."""
    data = struct.pack(f">{count}H", *range(first, first + count))
    return data[0::2], data[1::2]


class PublishRun:
    """QoS 1 or 2 packets of one topic that differ in packet identifier and payload alone.

    `data` holds `count` of them; `high` and `low` are the bytes of their packet identifiers.
    """

    __slots__ = ("_payloads", "_places", "_starts", "count", "data", "high", "low")

    def __init__(
        self, data: bytes, starts: Sequence[int], places: Sequence[int], payload: int
    ) -> None:
        """Take the packets that start at `starts`, and have their packet identifiers at `places`.

        The payload begins `payload` bytes behind that place.
        """
        self.data = data
        self.count = len(starts)
        self._starts = starts
        self._places = places
        self._payloads = payload
        self.high, self.low = _two_bytes_at(data, places)

    def numbered(self, first: int) -> bytearray:
        """Return the packets with the packet identifiers from `first` on."""
        data = bytearray(self.data)
        places = self._places
        high, low = two_bytes(first, self.count)
        if isinstance(places, range):
            data[places.start :: places.step] = high
            data[places.start + 1 :: places.step] = low
        else:
            for place, upper, lower in zip(places, high, low, strict=True):
                data[place] = upper
                data[place + 1] = lower
        return data

    def payload(self, number: int) -> bytes:
        """Return the payload of the packet with this number, from 0."""
        end = len(self.data) if number + 1 == self.count else self._starts[number + 1]
        return self.data[self._places[number] + self._payloads : end]

    @property
    def payload_bytes(self) -> int:
        """The bytes of all payloads."""
        heads = sum(self._places) - sum(self._starts) + self.count * self._payloads
        return len(self.data) - heads

    @property
    def packet_ids(self) -> tuple[int, ...]:
        """The packet identifiers, in order."""
        return tuple(high << 8 | low for high, low in zip(self.high, self.low, strict=True))


def publish_run(packets: PacketRun, topic: int, *, properties: bool) -> PublishRun:
    """Return as many of the packets as are PUBLISHes without properties, from the first on.

    Their bodies begin with the same topic name, which takes `topic` bytes, and the first is such
    a PUBLISH. In MQTT 5 a byte says that there are no `properties`. The packet identifier 0 is an
    error [MQTT-2.2.1-3].
    """
    data, starts = packets.data, packets.starts
    places = _moved(packets.bodies, topic)
    payload = 2 + properties
    run = PublishRun(data, starts, places, payload)
    count = run.count
    if properties:
        marks = _bytes_at(data, places, 2)
        count -= len(marks.lstrip(b"\0"))
    if 0 in run.high and 0 in run.low:
        pairs = zip(run.high, run.low, strict=True)
        count = next((n for n, pair in enumerate(pairs) if pair == (0, 0) and n < count), count)
    if count < run.count:
        return PublishRun(data[: starts[count]], starts[:count], places[:count], payload)
    return run


def _moved(places: Sequence[int], by: int) -> Sequence[int]:
    if isinstance(places, range):
        return range(places.start + by, places.stop + by, places.step)
    return [place + by for place in places]


def _two_bytes_at(data: bytes, places: Sequence[int]) -> tuple[bytes, bytes]:
    return _bytes_at(data, places, 0), _bytes_at(data, places, 1)


def _bytes_at(data: bytes, places: Sequence[int], behind: int) -> bytes:
    if isinstance(places, range):
        return data[places.start + behind :: places.step]
    return bytes([data[place + behind] for place in places])

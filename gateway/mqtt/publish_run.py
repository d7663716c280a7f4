"""PUBLISH packets with a packet identifier that came one behind the other and are alike."""

from collections.abc import Sequence

from gateway.mqtt.framing import PacketRun

HIGH = b"".join(bytes((high,)) * 256 for high in range(256))
"""The high bytes of all packet identifiers, in order."""

LOW = bytes(range(256)) * 256
"""Their low bytes."""


class PublishRun:
    """QoS 1 or 2 packets of one topic that differ in packet identifier and payload alone.

    `data` holds `count` of them; `high` and `low` are the bytes of their packet identifiers.
    """

    __slots__ = ("_payloads", "_places", "_starts", "count", "data", "high", "low", "payload_bytes")

    def __init__(
        self, data: bytes, starts: Sequence[int], places: Sequence[int], payload: int
    ) -> None:
        """Take the packets that start at `starts`, and have their packet identifiers at `places`.

        The payload begins `payload` bytes behind that place.
        """
        self.data = data
        self.count = count = len(starts)
        self._starts = starts
        self._places = places
        self._payloads = payload
        if isinstance(places, range):
            self.high = data[places.start :: places.step]
            self.low = data[places.start + 1 :: places.step]
            heads = places.start * count
        else:
            self.high = bytes([data[place] for place in places])
            self.low = bytes([data[place + 1] for place in places])
            heads = sum(places) - sum(starts)
        self.payload_bytes = len(data) - heads - payload * count

    def numbered(self, first: int) -> bytearray:
        """Return the packets with the packet identifiers from `first` on."""
        data = bytearray(self.data)
        places = self._places
        high, low = HIGH[first : first + self.count], LOW[first : first + self.count]
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
    def packet_ids(self) -> tuple[int, ...]:
        """The packet identifiers, in order."""
        return tuple(high << 8 | low for high, low in zip(self.high, self.low, strict=True))


def publish_run(packets: PacketRun, topic: int, *, properties: bool) -> PublishRun:
    """Return as many of the packets as are PUBLISHes without properties, from the first on.

    Their bodies begin with the same topic name, which takes `topic` bytes, and the first is such
    a PUBLISH. In MQTT 5 a byte says that there are no `properties`. The packet identifier 0 is an
    error [MQTT-2.2.1-3].
    """
    data, starts, bodies = packets.data, packets.starts, packets.bodies
    places: Sequence[int]
    if isinstance(bodies, range):
        places = range(bodies.start + topic, len(data), bodies.step)
        marks = data[places.start + 2 :: places.step] if properties else b""
    else:
        places = [body + topic for body in bodies]
        marks = bytes([data[place + 2] for place in places]) if properties else b""
    run = PublishRun(data, starts, places, 2 + properties)
    count = run.count - len(marks.lstrip(b"\0"))
    if 0 in run.high and 0 in run.low:
        pairs = zip(run.high, run.low, strict=True)
        count = next((n for n, pair in enumerate(pairs) if pair == (0, 0) and n < count), count)
    if count == run.count:
        return run
    return PublishRun(data[: starts[count]], starts[:count], places[:count], 2 + properties)

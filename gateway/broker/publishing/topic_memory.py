"""The last message and the usual interval of each topic, for viewers that connect later."""

import heapq

from gateway.counters import Counters
from gateway.mqtt.publication import PacketBatch, Publication

PAYLOAD_BYTES = 256
"""Bytes of the last payload that are stored."""

MAXIMUM_TOPIC = 1_024
"""Bytes of a topic name; longer ones are not stored."""

HELD_BYTES = 512
"""Bytes of packets up to which the payload is extracted later, on request; from more at once."""

STEP = 0.25
"""Messages within this many seconds form one interval."""

WEIGHT = 0.2
"""The weight of the newest interval in the average."""

FORGOTTEN = 16
"""The part of the topics that are evicted at once for new ones: cheaper than one by one."""

LENGTH = 2
"""Bytes before a topic name in a PUBLISH."""

_DOLLAR = ord("$")
_HELD_BYTES = HELD_BYTES  # compiled, C names
_STEP = STEP
_WEIGHT = WEIGHT


class Topic:
    """The last message of a topic; `arrived` is its monotonic second.

    `interval` is the usual number of seconds between two messages.
    """

    __slots__ = (
        "_begun",
        "_new",
        "_number",
        "_packets",
        "_payload",
        "_size",
        "arrived",
        "bytes",
        "client_id",
        "count",
        "interval",
        "qos",
    )

    def __init__(self, arrived: float) -> None:
        self.arrived = arrived
        self.bytes = 0
        self.count = 0
        self.interval = 0.0
        self.qos = 0
        self.client_id: str | None = None
        self._begun = arrived
        self._new = -1  # messages since then; the first one ends no interval
        self._packets: PacketBatch | None = None
        self._number = 0
        self._payload = b""
        self._size = 0

    @property
    def payload(self) -> bytes:
        """The first bytes of the last payload."""
        self._read()
        return self._payload

    @property
    def size(self) -> int:
        """The size of that payload."""
        self._read()
        return self._size

    def note(self, publication: Publication, number: int, count: int) -> None:
        """Note this many messages; the last one has this number."""
        arrived, packets = publication.arrived, publication.packets
        self.arrived = arrived
        self.qos = publication.qos
        self.client_id = publication.client_id
        self.count += count
        self.bytes += packets.payload_bytes(number + 1 - count, count)
        self._packets = packets
        self._number = number
        self._new += count
        if arrived - self._begun >= _STEP:
            self._end_step(arrived)
        if len(packets.data) > _HELD_BYTES:
            self._read()

    def _end_step(self, arrived: float) -> None:
        """Add the time since the last step to the average interval."""
        interval = (arrived - self._begun) / self._new
        weight = _WEIGHT if self.interval else 1.0
        self.interval += weight * (interval - self.interval)
        self._begun = arrived
        self._new = 0

    def _read(self) -> None:
        """Copy the payload, so that the packets can be freed."""
        packets, self._packets = self._packets, None
        if packets is not None:
            payload = packets.one(self._number)
            self._payload, self._size = bytes(payload[:PAYLOAD_BYTES]), len(payload)


class Watcher:
    """Observes messages that are being delivered."""

    __slots__ = ()

    def note(self, publication: Publication, first: int, count: int) -> None:
        """Observe this many messages, from number `first` on."""
        raise NotImplementedError


class TopicMemory(Watcher):
    """Stores topics; the one whose last message is oldest makes way for a new one.

    `topics` are by name, encoded with its length as in a PUBLISH. Topics that begin with `$` are
    not stored.
    """

    __slots__ = ("_counters", "maximum", "topics")

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self.maximum = 0
        self.topics: dict[bytes, Topic] = {}

    def limit(self, maximum: int) -> None:
        """Store this many topics from now on."""
        self.maximum = maximum
        if len(self.topics) > maximum:
            self._forget(len(self.topics) - maximum)

    def note(self, publication: Publication, first: int, count: int) -> None:
        """Store messages that are being delivered."""
        if not publication.mixed:
            self._note(publication.topic_name, publication, first + count - 1, count)
            return
        for number in range(first, first + count):
            self._note(publication.packets.topic_name(number), publication, number, 1)

    def _note(self, name: bytes, publication: Publication, number: int, count: int) -> None:
        topic = self.topics.get(name)
        if topic is None:
            if len(name) > MAXIMUM_TOPIC + LENGTH or name[LENGTH] == _DOLLAR:
                return
            if len(self.topics) >= self.maximum:
                forgotten = max(1, self.maximum // FORGOTTEN)
                self._forget(forgotten)
                self._counters.add("tidegate/topics/forgotten", forgotten)
            topic = self.topics[name] = Topic(publication.arrived)
        topic.note(publication, number, count)

    def _forget(self, count: int) -> None:
        by_age = [(topic.arrived, name) for name, topic in self.topics.items()]
        for _, name in heapq.nsmallest(count, by_age):
            del self.topics[name]

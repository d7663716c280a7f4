"""The last message of each topic, and how often one comes: for whoever comes late."""

import heapq

from gateway.counters import Counters
from gateway.mqtt.publication import PacketBatch, Publication

PAYLOAD_BYTES = 256
"""Bytes of the last payload that are kept."""

MAXIMUM_TOPIC = 1_024
"""Bytes of a topic name; longer ones are not remembered."""

HELD_BYTES = 512
"""Bytes of packets from which the payload is taken only when somebody asks; of more at once."""

STEP = 0.25
"""Seconds within which messages make one interval together."""

WEIGHT = 0.2
"""How much the newest interval counts in the usual one."""

FORGOTTEN = 16
"""The part of the topics that are forgotten at once for new ones: it is cheaper than one by one."""

LENGTH = 2
"""Bytes before a topic name in a PUBLISH."""

_DOLLAR = ord("$")
_HELD_BYTES = HELD_BYTES  # compiled, C names
_STEP = STEP
_WEIGHT = WEIGHT


class Topic:
    """What is remembered of a topic: `arrived` is the monotonic second of the last message.

    `interval` is how many seconds usually pass between two.
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
        """How many bytes that payload had."""
        self._read()
        return self._size

    def note(self, publication: Publication, number: int, count: int) -> None:
        """Note so many messages, of which that with this number is the last."""
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
        """Let the messages since the last step count in the interval."""
        interval = (arrived - self._begun) / self._new
        weight = _WEIGHT if self.interval else 1.0
        self.interval += weight * (interval - self.interval)
        self._begun = arrived
        self._new = 0

    def _read(self) -> None:
        """Take the payload from the packets, which may go."""
        packets, self._packets = self._packets, None
        if packets is not None:
            payload = packets.one(self._number)
            self._payload, self._size = bytes(payload[:PAYLOAD_BYTES]), len(payload)


class Watcher:
    """Whoever looks at messages that are being delivered."""

    __slots__ = ()

    def note(self, publication: Publication, first: int, count: int) -> None:
        """Look at so many messages, from number `first` on."""
        raise NotImplementedError


class TopicMemory(Watcher):
    """Remembers topics; those that had no message for longest are forgotten for new ones.

    `topics` are by name, as it stands in a PUBLISH behind its length. Topics that begin with `$`
    are not remembered.
    """

    __slots__ = ("_counters", "maximum", "topics")

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self.maximum = 0
        self.topics: dict[bytes, Topic] = {}

    def limit(self, maximum: int) -> None:
        """Remember so many topics from now on."""
        self.maximum = maximum
        if len(self.topics) > maximum:
            self._forget(len(self.topics) - maximum)

    def note(self, publication: Publication, first: int, count: int) -> None:
        """Remember messages that are being delivered."""
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

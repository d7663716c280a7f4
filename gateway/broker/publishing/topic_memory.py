"""The last message and the usual interval of each topic, for viewers that connect later."""

import heapq
from collections.abc import Callable, Iterator

from gateway.counters import Counters
from gateway.mqtt.codec.fields import write_string
from gateway.mqtt.publication import Publication, body_start

PAYLOAD_BYTES = 256
"""Bytes of the last payload that are stored."""

MAXIMUM_TOPIC = 1_024
"""Bytes of a topic name; longer ones are not stored."""

MAXIMUM_HELD = 1_024
"""Bytes of packets that wait for `Topic.read`; larger ones are read at once. 10,000 topics hold at
most some 20 MiB until they are swept."""

STEP = 0.25
"""Messages within this many seconds form one interval."""

WEIGHT = 0.2
"""The weight of the newest interval in the average."""

FORGOTTEN = 16
"""The part of the topics that are evicted at once for new ones: cheaper than one by one."""

LENGTH = 2
"""Bytes before a topic name in a PUBLISH."""

_DOLLAR = ord("$")
_PAYLOAD_BYTES = PAYLOAD_BYTES  # compiled, C names
_MAXIMUM_HELD = MAXIMUM_HELD
_STEP = STEP
_WEIGHT = WEIGHT


class Topic:
    """The last message of a topic, as of the last `read`; `arrived` is its monotonic second.

    `payload` are the first bytes of its payload of `size` bytes. `interval` is the usual number of
    seconds between two messages. `count` and `bytes` include messages that were not read. `last` is
    the publication of the last message if that was not read, and `place` the message's number in it
    if it has several.
    """

    __slots__ = (
        "_begun",
        "_counted",
        "_ends",
        "arrived",
        "bytes",
        "client_id",
        "count",
        "interval",
        "last",
        "payload",
        "place",
        "qos",
        "size",
    )

    def __init__(self, arrived: float) -> None:
        self.arrived = arrived
        self.bytes = 0
        self.count = 0
        self.interval = 0.0
        self.qos = 0
        self.client_id: str | None = None
        self.payload = b""
        self.size = 0
        self.last: Publication | None = None
        self.place = 0
        self._ends = arrived + _STEP  # from this second on `read` ends the step
        self._begun = arrived
        self._counted = 1  # messages at that time; the first one ends no interval

    def read(self) -> None:
        """Store what is to be known of the last message, and release its publication."""
        publication = self.last
        if publication is None:
            return
        self.last = None
        packets = publication.packets
        place = self.place if packets.count > 1 else 0
        start, end = packets.offsets[place], packets.start(place + 1)
        self.size = end - start
        self.payload = packets.data[start : min(end, start + _PAYLOAD_BYTES)]
        self.qos = publication.qos
        self.client_id = publication.client_id
        self.arrived = publication.arrived
        if self.arrived >= self._ends:
            self._end_step()

    def _end_step(self) -> None:
        """Add the time since the last step to the average interval."""
        interval = (self.arrived - self._begun) / (self.count - self._counted)
        weight = _WEIGHT if self.interval else 1.0
        self.interval += weight * (interval - self.interval)
        self._begun = self.arrived
        self._counted = self.count
        self._ends = self.arrived + _STEP


class TopicMemory:
    """Stores topics; the one whose last message is oldest makes way for a new one.

    `topics` are by name, encoded with its length as in a PUBLISH. Topics that begin with `$` are
    not stored. `forgotten` is called with the name of a topic that is not stored any more.
    """

    __slots__ = ("_counters", "_forgotten", "maximum", "topics")

    def __init__(self, counters: Counters, forgotten: Callable[[bytes], None]) -> None:
        self._counters = counters
        self._forgotten = forgotten
        self.maximum = 0
        self.topics: dict[bytes, Topic] = {}

    def find(self, topic: str) -> Topic | None:
        """Return a topic, None if it is not stored."""
        return self.topics.get(write_string(topic))

    def limit(self, maximum: int) -> None:
        """Store this many topics from now on."""
        self.maximum = maximum
        if len(self.topics) > maximum:
            self._forget(len(self.topics) - maximum)

    def note(self, publication: Publication, first: int, count: int) -> Topic | None:
        """Store messages of one topic that are being delivered, from number `first` on.

        Return the topic, None if it is not stored.
        """
        topic = self._topic(publication.topic_name, publication.arrived)
        if topic is not None:
            packets = publication.packets
            topic.last, topic.place = publication, first + count - 1
            topic.count += count
            topic.bytes += packets.payload_bytes(first, count)
            if len(packets.data) > _MAXIMUM_HELD:
                topic.read()
        return topic

    def note_mixed(self, publication: Publication, first: int, count: int) -> None:
        """Store messages of several topics."""
        packets, topics, arrived = publication.packets, self.topics, publication.arrived
        data, place = packets.data, first - 1
        large = len(data) > _MAXIMUM_HELD
        last = first + count
        starts, offsets = packets.starts[first:last], packets.offsets[first:last]
        ends = [*packets.starts[first + 1 : last + 1], len(data)]  # perhaps one too many
        for start, offset, end in zip(starts, offsets, ends, strict=False):
            place += 1
            body = start + 2
            if data[start + 1] > 0x7F:
                body = body_start(data, start)
            name = data[body : body + LENGTH + (data[body] << 8 | data[body + 1])]
            topic = topics.get(name) or self._topic(name, arrived)
            if topic is None:
                continue
            topic.last, topic.place = publication, place
            topic.count += 1
            topic.bytes += end - offset
            if large:
                topic.read()

    def sweep(self) -> Iterator[None]:
        """Read the last messages of all topics, one with each step."""
        for topic in list(self.topics.values()):
            if topic.last is not None:
                topic.read()
                yield

    def _topic(self, name: bytes, arrived: float) -> Topic | None:
        """Return a topic, perhaps a new one; None for one that is not stored."""
        topic = self.topics.get(name)
        if topic is not None:
            return topic
        if len(name) > MAXIMUM_TOPIC + LENGTH or name[LENGTH] == _DOLLAR:
            return None
        if len(self.topics) >= self.maximum:
            forgotten = max(1, self.maximum // FORGOTTEN)
            self._forget(forgotten)
            self._counters.add("tidegate/topics/forgotten", forgotten)
        topic = self.topics[name] = Topic(arrived)
        return topic

    def _forget(self, count: int) -> None:
        for _ in self.sweep():
            pass
        by_age = [(topic.arrived, name) for name, topic in self.topics.items()]
        for _, name in heapq.nsmallest(count, by_age):
            del self.topics[name]
            self._forgotten(name)

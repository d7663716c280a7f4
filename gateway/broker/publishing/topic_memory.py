"""The last message and the usual interval of each topic, for viewers that connect later."""

import heapq

from gateway.counters import Counters
from gateway.mqtt.publication import Publication, body_start

PAYLOAD_BYTES = 256
"""Bytes of the last payload that are stored."""

MAXIMUM_TOPIC = 1_024
"""Bytes of a topic name; longer ones are not stored."""

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
_STEP = STEP
_WEIGHT = WEIGHT


class Topic:
    """The last message of a topic; `arrived` is its monotonic second.

    `payload` are the first bytes of its payload of `size` bytes. `interval` is the usual number of
    seconds between two messages.
    """

    __slots__ = (
        "_begun",
        "_counted",
        "arrived",
        "bytes",
        "client_id",
        "count",
        "ends",
        "interval",
        "payload",
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
        self.ends = arrived + _STEP  # the second from which on the next message ends the step
        self._begun = arrived
        self._counted = 1  # messages at that time; the first one ends no interval

    def end_step(self) -> None:
        """Add the time since the last step to the average interval."""
        interval = (self.arrived - self._begun) / (self.count - self._counted)
        weight = _WEIGHT if self.interval else 1.0
        self.interval += weight * (interval - self.interval)
        self._begun = self.arrived
        self._counted = self.count
        self.ends = self.arrived + _STEP


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
        packets = publication.packets
        if not packets.size:
            self._note_uneven(publication, first, count)
            return
        name, arrived = publication.topic_name, publication.arrived
        topic = self.topics.get(name) or self._begin(name, arrived)
        if topic is None:
            return
        data, end = packets.data, (first + count) * packets.size
        size = packets.size - packets.body - packets.payload
        stop = end if size <= _PAYLOAD_BYTES else end - size + _PAYLOAD_BYTES
        topic.payload = data[end - size : stop]
        topic.size = size
        topic.count += count
        topic.bytes += count * size
        topic.arrived = arrived
        topic.qos = publication.qos
        topic.client_id = publication.client_id
        if arrived >= topic.ends:
            topic.end_step()

    def _note_uneven(self, publication: Publication, first: int, count: int) -> None:
        """Store messages of several topics or sizes, without a call for each."""
        packets, topics, arrived = publication.packets, self.topics, publication.arrived
        data, qos, client_id = packets.data, publication.qos, publication.client_id
        last = first + count
        starts, offsets = packets.starts[first : last + 1], packets.offsets[first:last]
        ends = [*starts[1:], len(data)] if last == packets.count else starts[1:]
        for start, offset, end in zip(starts, offsets, ends, strict=False):
            body = start + 2
            if data[start + 1] > 0x7F:
                body = body_start(data, start)
            name = data[body : body + LENGTH + (data[body] << 8 | data[body + 1])]
            topic = topics.get(name) or self._begin(name, arrived)
            if topic is None:
                continue
            size = end - offset
            topic.payload = data[
                offset : end if size <= _PAYLOAD_BYTES else offset + _PAYLOAD_BYTES
            ]
            topic.size = size
            topic.count += 1
            topic.bytes += size
            topic.arrived = arrived
            topic.qos = qos
            topic.client_id = client_id
            if arrived >= topic.ends:
                topic.end_step()

    def _begin(self, name: bytes, arrived: float) -> Topic | None:
        """Return a new topic; None for one that is not stored."""
        if len(name) > MAXIMUM_TOPIC + LENGTH or name[LENGTH] == _DOLLAR:
            return None
        if len(self.topics) >= self.maximum:
            forgotten = max(1, self.maximum // FORGOTTEN)
            self._forget(forgotten)
            self._counters.add("tidegate/topics/forgotten", forgotten)
        topic = self.topics[name] = Topic(arrived)
        return topic

    def _forget(self, count: int) -> None:
        by_age = [(topic.arrived, name) for name, topic in self.topics.items()]
        for _, name in heapq.nsmallest(count, by_age):
            del self.topics[name]

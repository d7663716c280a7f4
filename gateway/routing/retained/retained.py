"""The last retained message of each topic, found by topic filter (MQTT 5, section 3.3.1.3)."""

from itertools import accumulate

from gateway.mqtt.publication import Publication
from gateway.routing.retained.topics import RetainedTopics

SPARE_ENTRIES = 1_024
"""Empty entries of the log, beyond as many as it has messages, before it is compacted."""

_SPARE_ENTRIES = SPARE_ENTRIES  # compiled, a C name that no other module sees


class Cursor:
    """A reader's position in a log: the messages from `index` on, before `end`.

    Messages at `end` and after it are newer than the reader.
    """

    __slots__ = ("end", "index")

    def __init__(self, end: int) -> None:
        self.index = 0
        self.end = end

    @property
    def done(self) -> bool:
        """Whether everything was read."""
        return self.index >= self.end


class RetainedLog:
    """Messages by topic, each at an index that only `renew` changes; a new one is appended.

    So an index is all that a reader needs. Entries of removed messages stay empty until there are
    too many; then the log is compacted, and all cursors are moved with it.
    """

    __slots__ = ("_cursors", "_end", "_indexes", "_log")

    def __init__(self) -> None:
        self._indexes: dict[str, int] = {}  # by topic
        self._log: list[Publication | None] = []
        self._cursors: dict[Cursor, None] = {}
        self._end = 0  # `end` of the newest cursor, the highest of all

    def __len__(self) -> int:
        return len(self._indexes)

    def get(self, topic: str) -> Publication | None:
        """Return the message of this topic."""
        index = self._indexes.get(topic)
        return None if index is None else self._log[index]

    def put(self, topic: str, message: Publication) -> None:
        """Replace the message of this topic in place."""
        self._log[self._indexes[topic]] = message

    def pop(self, topic: str) -> Publication | None:
        """Remove and return the message of this topic."""
        index = self._indexes.pop(topic, None)
        if index is None:
            return None
        message = self._log[index]
        self._log[index] = None
        return message

    def index(self, topic: str) -> int:
        """Return the index of this topic's message, valid until one is added; -1 without one."""
        return self._indexes.get(topic, -1)

    def open(self) -> Cursor:
        """Return a cursor before all messages; `close` it when it is no longer needed."""
        cursor = Cursor(len(self._log))
        self._cursors[cursor] = None
        self._end = cursor.end
        return cursor

    def close(self, cursor: Cursor) -> None:
        """Forget a cursor."""
        del self._cursors[cursor]
        if not self._cursors:
            self._end = 0

    def read(self, cursor: Cursor, most: int) -> list[Publication]:
        """Return the messages of up to `most` next entries, and advance the cursor."""
        index = min(cursor.index + most, cursor.end)
        found = self._log[cursor.index : index]
        cursor.index = index
        return [each for each in found if each is not None]

    def is_ahead(self, topic: str) -> bool:
        """Return whether a cursor may still reach the message of this topic."""
        return 0 <= self._indexes.get(topic, -1) < self._end

    def renew(self, topic: str) -> None:
        """Move the message of this topic to the end, behind all cursors."""
        message = self.pop(topic)
        if message is not None:
            self.append(topic, message)

    def append(self, topic: str, message: Publication) -> None:
        """Append the first message of a topic."""
        log, indexes = self._log, self._indexes
        # copying costs as much as all entries, so half of them must be empty
        if len(log) >= 2 * len(indexes) + _SPARE_ENTRIES:
            self._close_up()
            log = self._log
        indexes[topic] = len(log)
        log.append(message)

    def _close_up(self) -> None:
        """Compact the log."""
        messages = [each for each in self._log if each is not None]
        if self._cursors:
            # the number of remaining entries before each index
            before = [0, *accumulate([each is not None for each in self._log])]
            for cursor in self._cursors:
                cursor.index = before[cursor.index]
                cursor.end = before[cursor.end]
            self._end = before[self._end]
        for index, message in enumerate(messages):
            self._indexes[message.topic] = index
        self._log = [*messages]


MAXIMUM_MESSAGES = 100_000
"""Retained messages of one gateway: some 50 MB of small ones."""

MAXIMUM_BYTES = 64 * 1024 * 1024
"""Bytes of all retained messages with their topics and tree."""

LEVEL_OVERHEAD = 300
"""Bytes of one level of the tree; counted, since one topic can have 65,536 of them."""


_LEVEL_OVERHEAD = LEVEL_OVERHEAD  # compiled, a C name that no other module sees


class RetainedMessages:
    """At most one message for each topic, within bounds of number and bytes.

    When a bound is reached the new message is refused and stored ones stay; the caller answers the
    publisher (Quota exceeded, 0x97) and counts it.
    """

    __slots__ = ("_bytes", "_expiring", "_topics", "log", "maximum_bytes", "maximum_messages")

    def __init__(
        self, maximum_messages: int = MAXIMUM_MESSAGES, maximum_bytes: int = MAXIMUM_BYTES
    ) -> None:
        self.maximum_messages = maximum_messages
        self.maximum_bytes = maximum_bytes
        self.log = RetainedLog()
        self._topics = RetainedTopics()
        self._expiring: dict[str, Publication] = {}  # by topic: those with an expiry interval
        self._bytes = 0

    def __len__(self) -> int:
        return len(self.log)

    @property
    def bytes(self) -> int:
        """The bytes that the messages and their tree occupy, as bounded by `maximum_bytes`."""
        return self._bytes

    def get(self, topic: str) -> Publication | None:
        """Return the message of this topic, expired or not."""
        return self.log.get(topic)

    def has_capacity(self, publication: Publication, first: int, count: int) -> bool:
        """Return whether this many messages, from number `first` on, surely fit.

        The estimate assumes that none replaces another, and that each byte is a level of a topic.
        """
        most = (1 + _LEVEL_OVERHEAD) * publication.size(first, count)
        fits = most <= self.maximum_bytes - self._bytes
        return fits and len(self.log) + count <= self.maximum_messages

    def accepts(self, publication: Publication) -> bool:
        """Return what `set` would return, without a change."""
        topic, size = publication.topic, publication.size(0, 1)
        if _is_empty(publication):
            return True
        before = self.log.get(topic)
        free = self.maximum_bytes - self._bytes
        if before is not None:
            return size - before.size(0, 1) <= max(0, free)
        if len(self.log) >= self.maximum_messages:
            return False
        free -= size
        # an upper limit, which needs no search of the tree
        most = topic.count("/") + 1
        return (
            _LEVEL_OVERHEAD * most <= free or _LEVEL_OVERHEAD * self._topics.missing(topic) <= free
        )

    def set(self, publication: Publication) -> bool:
        """Store a message in place of its topic's last one; return False if it does not fit.

        An empty payload removes the last one and is not stored [MQTT-3.3.1-6], [MQTT-3.3.1-7]. A
        successor that is not larger always fits.
        """
        topic, size = publication.topic, publication.size(0, 1)
        if _is_empty(publication):
            self._remove(topic)
            return True
        log = self.log
        before = log.get(topic)
        free = self.maximum_bytes - self._bytes
        if before is not None:
            more = size - before.size(0, 1)
            if more > 0 and more > free:
                return False
            self._bytes += more
            if self._expiring:
                self._expiring.pop(topic, None)
            log.put(topic, publication)
        else:
            free -= size
            if free < 0 or len(log) >= self.maximum_messages:
                return False
            levels = _LEVEL_OVERHEAD * self._topics.add(topic, free // _LEVEL_OVERHEAD)
            if levels > free:
                return False
            self._bytes += size + levels
            log.append(topic, publication)
        if publication.properties.expiry is not None:
            self._expiring[topic] = publication
        return True

    def find(self, topic_filter: str, now: float) -> list[Publication]:
        """Return the messages whose topic the filter matches, except those expired at `now`.

        `now` is monotonic seconds. A filter without wildcards costs its own levels; `$` topics are
        not matched by a leading wildcard [MQTT-4.7.2-1].
        """
        if _is_topic(topic_filter):
            message = self.log.get(topic_filter)
            found = [] if message is None else [message]
        else:
            found = self._of(self._topics.match(topic_filter))
        return self._live(found, now)

    def few(
        self, topic_filter: str, cursor: Cursor, most: int, now: float
    ) -> list[Publication] | None:
        """Return those of them that a new cursor reaches.

        None if more than `most` names would have to be compared to find them.
        """
        if _is_topic(topic_filter):
            message = self.log.get(topic_filter)
            if message is None:
                return []
            found = self._live([message], now)
        else:
            topics = self._topics.match_few(topic_filter, most)
            if topics is None:
                return None
            found = self._live(self._of(topics), now)
        log, end = self.log, cursor.end
        return [each for each in found if log.index(each.topic) < end]

    def read(self, topic_filter: str, cursor: Cursor, most: int, now: float) -> list[Publication]:
        """Return those of them in the cursor's next `most` entries."""
        found = self.log.read(cursor, most)
        if topic_filter[0] in "+#":
            found = _ordinary(found)
        if topic_filter != "#":
            found = _matching(found, topic_filter)
        return self._live(found, now)

    def _of(self, topics: list[str]) -> list[Publication]:
        """Return the messages of topics that have one."""
        log = self.log
        return [log.get(topic) for topic in topics]  # type: ignore[misc]  # each has one

    def _live(self, found: list[Publication], now: float) -> list[Publication]:
        """Return those that have not expired."""
        if not self._expiring:
            return found
        return [each for each in found if not each.expired(now)]

    @property
    def expiring(self) -> list[str]:
        """Return the topics whose messages have an expiry interval."""
        return list(self._expiring)

    def drop_expired(self, topics: list[str], now: float) -> list[Publication]:
        """Remove and return what has expired of these topics at `now` (monotonic seconds)."""
        expired = []
        for topic in topics:
            message = self._expiring.get(topic)
            if message is not None and message.expired(now):
                expired.append(message)
                self._remove(topic)
        return expired

    def _remove(self, topic: str) -> None:
        message = self.log.pop(topic)
        if message is None:
            return
        self._expiring.pop(topic, None)
        self._bytes -= message.size(0, 1) + _LEVEL_OVERHEAD * self._topics.remove(topic)


def _is_empty(publication: Publication) -> bool:
    """Return whether a message has no payload."""
    return publication.packets.payload_bytes(0, 1) == 0


def _is_topic(topic_filter: str) -> bool:
    """Return whether a topic filter matches only the topic that it is."""
    return "+" not in topic_filter and "#" not in topic_filter


def _ordinary(messages: list[Publication]) -> list[Publication]:
    """Return those whose topic does not begin with `$` [MQTT-4.7.2-1]."""
    found = []
    for message in messages:
        topic = message.topic
        if topic[0] != "$":
            found.append(message)
    return found


def _matching(messages: list[Publication], topic_filter: str) -> list[Publication]:
    """Return those that a topic filter with a wildcard matches; the filter is split once."""
    names = topic_filter.split("/")
    has_rest = names[-1] == "#"  # `#` also matches its parent level (MQTT 5, section 4.7.1.2)
    count = len(names) - has_rest
    named = [depth for depth in range(count) if names[depth] != "+"]
    found = []
    for message in messages:
        topic = message.topic
        levels = topic.split("/")
        if len(levels) != count and (not has_rest or len(levels) < count):
            continue
        for depth in named:
            if levels[depth] != names[depth]:
                break
        else:
            found.append(message)
    return found

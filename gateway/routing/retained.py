"""The last retained message of each topic, found by topic filter (MQTT 5, section 3.3.1.3)."""

from collections.abc import Iterable

from gateway.mqtt.message_expiry import expired
from gateway.mqtt.message_size import message_size
from gateway.routing.where.message import Message

MAXIMUM_MESSAGES = 100_000
"""Retained messages of one gateway: some 50 MB of small ones."""

MAXIMUM_BYTES = 64 * 1024 * 1024
"""Bytes of all retained messages with their topics and tree."""

LEVEL_OVERHEAD = 300
"""Bytes of one level of the tree; counted, since one topic can have 65,536 of them."""


class _Level:
    """One level of the topics that hold a message here or below; `topic` is of the one here.

    The message is found by its topic: its successor need not look for the level.
    """

    __slots__ = ("below", "topic")

    def __init__(self) -> None:
        self.below: dict[str, _Level] | None = None
        self.topic: str | None = None


class RetainedMessages:
    """At most one message for each topic, within bounds of number and bytes.

    When a bound is reached the new message is refused and what is kept stays; the caller
    answers the publisher (Quota exceeded, 0x97) and counts it.
    """

    __slots__ = ("_bytes", "_expiring", "_messages", "_root", "maximum_bytes", "maximum_messages")

    def __init__(
        self, maximum_messages: int = MAXIMUM_MESSAGES, maximum_bytes: int = MAXIMUM_BYTES
    ) -> None:
        self.maximum_messages = maximum_messages
        self.maximum_bytes = maximum_bytes
        self._messages: dict[str, Message] = {}  # by topic
        self._root = _Level()
        self._expiring: dict[str, Message] = {}  # by topic: those that have an expiry interval
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._messages)

    @property
    def bytes(self) -> int:
        """The bytes that the messages and their tree occupy, as `maximum_bytes` bounds them."""
        return self._bytes

    def get(self, topic: str) -> Message | None:
        """Return the message of this topic, expired or not."""
        return self._messages.get(topic)

    def accepts(self, message: Message) -> bool:
        """Return what `set` would return, and change nothing."""
        topic = message.topic
        if not message.payload:
            return True
        if topic in self._messages:
            return self._has_room_for_successor(message)
        most = message_size(message) + LEVEL_OVERHEAD * (topic.count("/") + 1)
        return self._has_room(most) or self._has_room(self._cost(message, topic.split("/")))

    def set(self, message: Message) -> bool:
        """Keep the message in place of its topic's last one; return False if there is no room.

        An empty payload removes the last one and is not kept [MQTT-3.3.1-6], [MQTT-3.3.1-7].
        """
        topic = message.topic
        if not message.payload:
            self._remove(topic)
            return True
        before = self._messages.get(topic)
        if before is None:
            if not self._add_topic(message):
                return False
        elif self._has_room_for_successor(message):
            self._bytes += message_size(message) - message_size(before)
        else:
            return False
        self._messages[topic] = message
        if message.message_expiry is not None:
            self._expiring[topic] = message
        elif self._expiring:
            self._expiring.pop(topic, None)
        return True

    def match(self, topic_filter: str, now: float) -> list[Message]:
        """Return the messages whose topic the filter matches, but for those expired at `now`.

        `now` is monotonic seconds. A filter without wildcards costs its own levels; `$` topics
        are not matched by a leading wildcard [MQTT-4.7.2-1].
        """
        found = self._matching(topic_filter)
        if not self._expiring:
            return found
        return [message for message in found if not expired(message, now)]

    def _matching(self, topic_filter: str) -> list[Message]:
        messages = self._messages
        if "+" not in topic_filter and "#" not in topic_filter:
            message = messages.get(topic_filter)
            return [] if message is None else [message]
        names = topic_filter.split("/")
        has_rest = names[-1] == "#"
        levels: list[_Level] = [self._root]
        for name in names[:-1] if has_rest else names:
            levels = self._descend(levels, name)
        if has_rest:
            levels = self._with_all_below(levels)
        return [messages[level.topic] for level in levels if level.topic is not None]

    def drop_expired(self, now: float) -> list[str]:
        """Remove what has expired at `now` (monotonic seconds); return the topics.

        Costs the number of messages that have an expiry interval at all.
        """
        topics = [topic for topic, message in self._expiring.items() if expired(message, now)]
        for topic in topics:
            self._remove(topic)
        return topics

    def _add_topic(self, message: Message) -> bool:
        """Make the levels of a topic that holds no message yet; return False if there is no room.

        That is a bound of number or of bytes.
        """
        topic = message.topic
        names = topic.split("/")
        depth, level = self._known(names)
        cost = message_size(message) + LEVEL_OVERHEAD * (len(names) - depth)
        if not self._has_room(cost):
            return False
        for name in names[depth:]:
            below = level.below
            if below is None:
                below = level.below = {}
            below[name] = level = _Level()
        level.topic = topic
        self._bytes += cost
        return True

    def _cost(self, message: Message, names: list[str]) -> int:
        """Return the bytes that keeping a message of a new topic adds."""
        return message_size(message) + LEVEL_OVERHEAD * (len(names) - self._known(names)[0])

    def _has_room(self, cost: int) -> bool:
        """Return whether one message more may be kept that adds so many bytes."""
        return (
            cost <= self.maximum_bytes - self._bytes and len(self._messages) < self.maximum_messages
        )

    def _has_room_for_successor(self, message: Message) -> bool:
        """Return whether the message may take its predecessor's place.

        What costs nothing more always may.
        """
        cost = message_size(message) - message_size(self._messages[message.topic])
        return cost <= max(0, self.maximum_bytes - self._bytes)

    def _known(self, names: list[str]) -> tuple[int, _Level]:
        """Return how many of the topic's levels are in the tree, and the last of them."""
        level = self._root
        for depth, name in enumerate(names):
            below = None if level.below is None else level.below.get(name)
            if below is None:
                return depth, level
            level = below
        return len(names), level

    def _remove(self, topic: str) -> None:
        message = self._messages.pop(topic, None)
        if message is None:
            return
        self._expiring.pop(topic, None)
        self._bytes -= message_size(message)
        names = topic.split("/")
        path = [self._root]
        for name in names:
            path.append(_below(path[-1])[name])
        path[-1].topic = None
        self._reclaim(path, names)

    def _reclaim(self, path: list[_Level], names: list[str]) -> None:
        """Cut the levels at the end of the path that hold nothing any more."""
        while names and path[-1].topic is None and not path[-1].below:
            path.pop()
            del _below(path[-1])[names.pop()]
            self._bytes -= LEVEL_OVERHEAD

    def _descend(self, levels: list[_Level], name: str) -> list[_Level]:
        """Return what this level of a topic filter matches below the levels."""
        if name == "+":
            return [below for level in levels for below in self._wild(level)]
        return [level.below[name] for level in levels if level.below and name in level.below]

    def _with_all_below(self, levels: list[_Level]) -> list[_Level]:
        """Return the levels and everything below them, as `#` matches."""
        found = list(levels)
        for level in found:  # which grows on the way
            found.extend(self._wild(level))
        return found

    def _wild(self, level: _Level) -> Iterable[_Level]:
        """Return the levels that a wildcard may stand for."""
        if level.below is None:
            return ()
        if level is self._root:
            return [below for name, below in level.below.items() if not name.startswith("$")]
        return level.below.values()


def _below(level: _Level) -> dict[str, _Level]:
    """Return what is below a level that has something there."""
    return level.below or {}

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
    """One level of the topics that hold a message here or below."""

    __slots__ = ("below", "message")

    def __init__(self) -> None:
        self.below: dict[str, _Level] = {}
        self.message: Message | None = None


class RetainedMessages:
    """At most one message for each topic, within bounds of number and bytes.

    When a bound is reached the new message is refused and what is kept stays; the caller
    answers the publisher (Quota exceeded, 0x97) and counts it.
    """

    __slots__ = ("_bytes", "_count", "_expiring", "_root", "maximum_bytes", "maximum_messages")

    def __init__(
        self, maximum_messages: int = MAXIMUM_MESSAGES, maximum_bytes: int = MAXIMUM_BYTES
    ) -> None:
        self.maximum_messages = maximum_messages
        self.maximum_bytes = maximum_bytes
        self._root = _Level()
        self._expiring: dict[str, Message] = {}  # by topic: those that have an expiry interval
        self._count = 0
        self._bytes = 0

    def __len__(self) -> int:
        return self._count

    @property
    def bytes(self) -> int:
        """The bytes that the messages and their tree occupy, as `maximum_bytes` bounds them."""
        return self._bytes

    def get(self, topic: str) -> Message | None:
        """Return the message of this topic, expired or not."""
        level: _Level | None = self._root
        for name in topic.split("/"):
            level = level.below.get(name) if level is not None else None
        return None if level is None else level.message

    def accepts(self, message: Message) -> bool:
        """Return what `set` would return, and change nothing."""
        if not message.payload:
            return True
        names = message.topic.split("/")
        depth, level = self._known(names)
        return self._has_room(*self._cost(message, names, depth, level))

    def set(self, message: Message) -> bool:
        """Keep the message in place of its topic's last one; return False if there is no room.

        An empty payload removes the last one and is not kept [MQTT-3.3.1-6], [MQTT-3.3.1-7].
        """
        if not message.payload:
            self._remove(message.topic)
            return True
        names = message.topic.split("/")
        depth, level = self._known(names)
        cost, new = self._cost(message, names, depth, level)
        if not self._has_room(cost, new):
            return False
        for name in names[depth:]:
            level.below[name] = level = _Level()
        self._put(level, message)
        self._count += new
        self._bytes += cost
        return True

    def match(self, topic_filter: str, now: float) -> list[Message]:
        """Return the messages whose topic the filter matches, but for those expired at `now`.

        `now` is monotonic seconds. A filter without wildcards costs its own levels; `$` topics
        are not matched by a leading wildcard [MQTT-4.7.2-1].
        """
        names = topic_filter.split("/")
        has_rest = names[-1] == "#"
        levels: list[_Level] = [self._root]
        for name in names[:-1] if has_rest else names:
            levels = self._descend(levels, name)
        if has_rest:
            levels = self._with_all_below(levels)
        held = [level.message for level in levels if level.message is not None]
        return [message for message in held if not expired(message, now)]

    def drop_expired(self, now: float) -> list[str]:
        """Remove what has expired at `now` (monotonic seconds); return the topics.

        Costs the number of messages that have an expiry interval at all.
        """
        topics = [topic for topic, message in self._expiring.items() if expired(message, now)]
        for topic in topics:
            self._remove(topic)
        return topics

    @staticmethod
    def _cost(message: Message, names: list[str], depth: int, level: _Level) -> tuple[int, bool]:
        """Return the bytes that keeping the message adds, and whether it replaces none."""
        cost = message_size(message) + LEVEL_OVERHEAD * (len(names) - depth)
        replaced = level.message if depth == len(names) else None
        if replaced is None:
            return cost, True
        return cost - message_size(replaced), False

    def _has_room(self, cost: int, new: bool) -> bool:
        # what costs nothing more may always take its predecessor's place
        return cost <= max(0, self.maximum_bytes - self._bytes) and (
            not new or self._count < self.maximum_messages
        )

    def _known(self, names: list[str]) -> tuple[int, _Level]:
        """Return how many of the topic's levels are in the tree, and the last of them."""
        level = self._root
        for depth, name in enumerate(names):
            below = level.below.get(name)
            if below is None:
                return depth, level
            level = below
        return len(names), level

    def _put(self, level: _Level, message: Message) -> None:
        level.message = message
        if message.message_expiry is None:
            self._expiring.pop(message.topic, None)
        else:
            self._expiring[message.topic] = message

    def _remove(self, topic: str) -> None:
        names = topic.split("/")
        path = [self._root]
        for name in names:
            level = path[-1].below.get(name)
            if level is None:
                return
            path.append(level)
        message = path[-1].message
        if message is None:
            return
        path[-1].message = None
        self._expiring.pop(topic, None)
        self._count -= 1
        self._bytes -= message_size(message)
        self._reclaim(path, names)

    def _reclaim(self, path: list[_Level], names: list[str]) -> None:
        """Cut the levels at the end of the path that hold nothing any more."""
        while names and path[-1].message is None and not path[-1].below:
            path.pop()
            del path[-1].below[names.pop()]
            self._bytes -= LEVEL_OVERHEAD

    def _descend(self, levels: list[_Level], name: str) -> list[_Level]:
        """Return what this level of a topic filter matches below the levels."""
        if name == "+":
            return [below for level in levels for below in self._below(level)]
        found = (level.below.get(name) for level in levels)
        return [level for level in found if level is not None]

    def _with_all_below(self, levels: list[_Level]) -> list[_Level]:
        """Return the levels and everything below them, as `#` matches."""
        found = list(levels)
        for level in found:  # which grows on the way
            found.extend(self._below(level))
        return found

    def _below(self, level: _Level) -> Iterable[_Level]:
        """Return the levels that a wildcard may stand for."""
        if level is self._root:
            return [below for name, below in level.below.items() if not name.startswith("$")]
        return level.below.values()

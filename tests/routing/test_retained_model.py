"""Retained messages, against a dict."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from gateway.mqtt.message_size import MESSAGE_OVERHEAD
from gateway.mqtt.plain_message import PlainMessage
from gateway.routing.retained import LEVEL_OVERHEAD, RetainedMessages
from gateway.routing.where.message import Message
from tests.support.naive_matcher import matches
from tests.support.plain_messages import plain
from tests.support.topics import TOPIC_FILTERS, TOPICS


class RetainedAgainstDict(RuleBasedStateMachine):
    """The tree and a dict of topic to message say the same after any history."""

    def __init__(self) -> None:
        super().__init__()
        self.retained = RetainedMessages(maximum_messages=4)
        self.kept: dict[str, Message | PlainMessage] = {}
        self.now = 0.0

    @rule(topic=TOPICS, payload=st.binary(max_size=2), expiry=st.none() | st.integers(0, 5))
    def set_message(self, topic: str, payload: bytes, expiry: int | None) -> None:
        message = Message(topic, payload, arrived=self.now, message_expiry=expiry)
        has_room = not payload or topic in self.kept or len(self.kept) < 4
        assert self.retained.accepts(message) == has_room
        assert self.retained.set(message) == has_room
        if not payload:
            self.kept.pop(topic, None)
        elif has_room:
            self.kept[topic] = message

    @rule(topic=TOPICS, payload=st.binary(min_size=1, max_size=2))
    def set_plain(self, topic: str, payload: bytes) -> None:
        message = plain(topic, payload, self.now)
        has_room = topic in self.kept or len(self.kept) < 4
        assert self.retained.set_plain(message) == has_room
        if has_room:
            self.kept[topic] = message

    @rule(seconds=st.integers(1, 3), drop=st.booleans())
    def pass_time(self, seconds: int, drop: bool) -> None:
        self.now += seconds
        if drop:
            live = {topic: message for topic, message in self.kept.items() if self.live(message)}
            assert len(self.retained.drop_expired(self.now)) == len(self.kept) - len(live)
            self.kept = live

    @rule(topic_filter=TOPIC_FILTERS)
    def match(self, topic_filter: str) -> None:
        expected = [
            message
            for topic, message in self.kept.items()
            if matches(topic_filter, topic) and self.live(message)
        ]
        found = self.retained.find(topic_filter, self.now)
        assert sorted(map(id, found)) == sorted(map(id, expected))
        cursor = self.retained.log.open()
        few = self.retained.few(topic_filter, cursor, 1_000, self.now)
        assert few is not None
        assert sorted(map(id, few)) == sorted(map(id, expected))
        if "+" in topic_filter or "#" in topic_filter:
            while not cursor.done:
                for each in self.retained.read(topic_filter, cursor, 2, self.now):
                    few.remove(each)
            assert few == []
        self.retained.log.close(cursor)

    @rule(topic=TOPICS)
    def get(self, topic: str) -> None:
        message, expected = self.retained.get(topic), self.kept.get(topic)
        if message is not None and isinstance(expected, PlainMessage):
            assert (message.topic, message.payload) == (expected.topic, expected.payload)
            self.kept[topic] = message  # for good
        assert message is self.kept.get(topic)

    @invariant()
    def accounts(self) -> None:
        levels = {
            tuple(names[: depth + 1])
            for names in (topic.split("/") for topic in self.kept)
            for depth in range(len(names))
        }
        sizes = sum(
            MESSAGE_OVERHEAD + len(each.topic.encode()) + len(each.payload)
            for each in self.kept.values()
        )
        assert self.retained.bytes == sizes + LEVEL_OVERHEAD * len(levels)
        assert len(self.retained) == len(self.kept)

    def live(self, message: Message | PlainMessage) -> bool:
        if isinstance(message, PlainMessage) or message.message_expiry is None:
            return True
        return self.now < message.arrived + message.message_expiry


TestRetainedAgainstDict = RetainedAgainstDict.TestCase

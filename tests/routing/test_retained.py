import time

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from gateway.mqtt.message_size import MESSAGE_OVERHEAD, message_size
from gateway.routing.retained import LEVEL_OVERHEAD, RetainedMessages
from gateway.routing.where.message import Message
from tests.support.naive_matcher import matches
from tests.support.topics import TOPIC_FILTERS, TOPICS


def kept(*topics: str) -> RetainedMessages:
    retained = RetainedMessages()
    for topic in topics:
        assert retained.set(Message(topic, topic.encode()))
    return retained


MATCHES = [
    ("a", ["a"]),
    ("a/b", ["a/b"]),
    ("a/#", ["a", "a/b", "a//c"]),
    ("a/+", ["a/b"]),
    ("a/+/+", ["a//c"]),
    ("+", ["a"]),
    ("#", ["a", "a/b", "a//c", "/"]),
    ("+/+", ["a/b", "/"]),
    ("/", ["/"]),
    ("$SYS/#", ["$SYS/uptime", "$SYS/$x"]),
    ("$SYS/+", ["$SYS/uptime", "$SYS/$x"]),
    ("+/uptime", []),
    ("a/b/c", []),
    ("b/#", []),
]


@pytest.mark.parametrize(("topic_filter", "topics"), MATCHES)
def test_match(topic_filter: str, topics: list[str]) -> None:
    retained = kept("a", "a/b", "a//c", "/", "$SYS/uptime", "$SYS/$x")
    found = [message.topic for message in retained.match(topic_filter, 0.0)]
    assert sorted(found) == sorted(topics)


def test_an_empty_payload_removes_and_gives_everything_back() -> None:
    retained = kept("a/b/c", "a/b")
    assert retained.set(Message("a/b/c"))
    assert retained.get("a/b/c") is None
    assert retained.get("a/b") is not None
    assert retained.set(Message("a/b"))
    assert (len(retained), retained.bytes) == (0, 0)


@pytest.mark.parametrize("topic", ["x", "a", "a/b/c/d"])
def test_an_empty_payload_for_a_topic_without_a_message_changes_nothing(topic: str) -> None:
    retained = kept("a/b/c")
    before = retained.bytes
    assert retained.set(Message(topic))
    assert (len(retained), retained.bytes) == (1, before)


def test_the_last_message_of_a_topic_stays() -> None:
    retained = kept("a")
    second = Message("a", b"second")
    assert retained.set(second)
    assert retained.match("a", 0.0) == [second]
    assert (len(retained), retained.bytes) == (1, message_size(second) + LEVEL_OVERHEAD)


def test_full_by_number_refuses_a_new_topic_only() -> None:
    retained = RetainedMessages(maximum_messages=1)
    assert retained.set(Message("a", b"1"))
    assert not retained.set(Message("b", b"1"))
    assert retained.get("b") is None
    assert retained.set(Message("a", b"a longer one"))
    assert retained.set(Message("a"))
    assert retained.set(Message("b", b"1"))


def test_full_by_bytes_refuses_and_keeps_the_last_message() -> None:
    retained = RetainedMessages(maximum_bytes=2 * (MESSAGE_OVERHEAD + LEVEL_OVERHEAD) + 20)
    assert retained.set(Message("a", b"123456789"))
    assert retained.set(Message("b", b"123456789"))
    assert not retained.set(Message("a", b"1234567890"))
    assert not retained.set(Message("a/b", b"1"))
    assert [message.payload for message in retained.match("#", 0.0)] == [b"123456789"] * 2
    assert retained.set(Message("a", b"x"))
    assert retained.set(Message("b", b"12345678901234567"))
    assert retained.bytes == retained.maximum_bytes


@pytest.mark.parametrize(("spare", "accepted"), [(0, True), (-1, False)])
def test_levels_that_others_have_made_need_no_room(spare: int, accepted: bool) -> None:
    retained = kept("a/b/c")
    message = Message("a/b/d", b"1")
    retained.maximum_bytes = retained.bytes + message_size(message) + LEVEL_OVERHEAD + spare
    assert retained.accepts(message) is accepted
    assert retained.bytes < retained.maximum_bytes
    assert retained.set(message) is accepted


def test_a_deep_topic_pays_for_its_levels() -> None:
    deepest = "/" * 65_535
    retained = RetainedMessages(maximum_bytes=16 * 1024 * 1024)
    assert not retained.set(Message(deepest, b"1"))
    retained.maximum_bytes *= 2
    before = time.process_time()
    assert retained.set(Message(deepest, b"1"))
    for topic_filter in (deepest, "#", "/+" + deepest[:-1], "+/" * 65_535):
        assert len(retained.match(topic_filter, 0.0)) == 1
    assert retained.set(Message(deepest))
    assert retained.bytes == 0
    assert time.process_time() - before < 5  # what is quadratic takes minutes


def test_expired_messages_are_not_found_and_can_be_dropped() -> None:
    retained = RetainedMessages()
    retained.set(Message("a", b"1", arrived=10.0, message_expiry=5))
    retained.set(Message("b", b"1", arrived=10.0))
    retained.set(Message("c", b"1", arrived=10.0, message_expiry=9))
    assert len(retained.match("#", 14.9)) == 3
    assert {message.topic for message in retained.match("#", 15.0)} == {"b", "c"}
    assert retained.drop_expired(14.9) == []
    assert len(retained.drop_expired(15.0)) == 1
    assert retained.get("a") is None
    assert len(retained) == 2


@pytest.mark.parametrize("successor", [Message("a", b"2"), Message("a")])
def test_a_replaced_message_can_t_expire_any_more(successor: Message) -> None:
    retained = RetainedMessages()
    retained.set(Message("a", b"1", message_expiry=5))
    retained.set(successor)
    assert retained.drop_expired(6.0) == []
    assert len(retained) == (1 if successor.payload else 0)


class RetainedAgainstDict(RuleBasedStateMachine):
    """The tree and a dict of topic to message say the same after any history."""

    def __init__(self) -> None:
        super().__init__()
        self.retained = RetainedMessages(maximum_messages=4)
        self.kept: dict[str, Message] = {}
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
        found = self.retained.match(topic_filter, self.now)
        assert sorted(map(id, found)) == sorted(map(id, expected))

    @rule(topic=TOPICS)
    def get(self, topic: str) -> None:
        assert self.retained.get(topic) is self.kept.get(topic)

    @invariant()
    def accounts(self) -> None:
        levels = {
            tuple(names[: depth + 1])
            for names in (topic.split("/") for topic in self.kept)
            for depth in range(len(names))
        }
        sizes = sum(map(message_size, self.kept.values()))
        assert self.retained.bytes == sizes + LEVEL_OVERHEAD * len(levels)
        assert len(self.retained) == len(self.kept)

    def live(self, message: Message) -> bool:
        return message.message_expiry is None or self.now < message.arrived + message.message_expiry


TestRetainedAgainstDict = RetainedAgainstDict.TestCase

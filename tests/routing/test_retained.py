import time

import pytest

from gateway.mqtt.message_size import MESSAGE_OVERHEAD, message_size
from gateway.routing.retained import LEVEL_OVERHEAD, RetainedMessages
from gateway.routing.where.message import Message
from tests.support.naive_matcher import matches
from tests.support.plain_messages import plain


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


SHARED = ["a", "a/b/c", "a/b/c/d/e", "a/b/c/d/f", "a/x/c", "a/x/y/z", "b/b/c"]

MATCHES_OF_SHARED = [
    ("a/b/c/+", []),
    ("a/b/c/+/+", ["a/b/c/d/e", "a/b/c/d/f"]),
    ("a/+/c", ["a/b/c", "a/x/c"]),
    ("+/b/c", ["a/b/c", "b/b/c"]),
    ("+/+/c", ["a/b/c", "a/x/c", "b/b/c"]),
    ("+/+/+", ["a/b/c", "a/x/c", "b/b/c"]),
    ("+/b/+", ["a/b/c", "b/b/c"]),
    ("a/x/+/z", ["a/x/y/z"]),
    ("a/x/+/y", []),
    ("a/b/#", ["a/b/c", "a/b/c/d/e", "a/b/c/d/f"]),
    ("+/b/#", ["a/b/c", "a/b/c/d/e", "a/b/c/d/f", "b/b/c"]),
    ("b/b/c/d/#", []),
    ("b/b/c/#", ["b/b/c"]),
    ("a/+/c/d/#", ["a/b/c/d/e", "a/b/c/d/f"]),
    ("+/+/+/+/#", ["a/b/c/d/e", "a/b/c/d/f", "a/x/y/z"]),
]


@pytest.mark.parametrize(("topic_filter", "topics"), MATCHES_OF_SHARED)
def test_match_where_topics_share_levels(topic_filter: str, topics: list[str]) -> None:
    for order in (SHARED, SHARED[::-1]):
        found = [message.topic for message in kept(*order).match(topic_filter, 0.0)]
        assert sorted(found) == sorted(topics)
        assert [topic for topic in SHARED if matches(topic_filter, topic)] == topics


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
@pytest.mark.parametrize(
    ("others", "topic", "levels"),
    [
        (["a/b/c"], "a/b/d", 1),
        (["a/b/c", "a/b/d"], "a/b/e/f", 2),
        (["a/b/c", "a/b/d"], "a/b", 0),
        (["a/b/c"], "a/b", 0),
        (["a"], "a/b/c", 2),
    ],
)
def test_levels_that_others_have_made_need_no_room(
    others: list[str], topic: str, levels: int, spare: int, accepted: bool
) -> None:
    retained = kept(*others)
    message = Message(topic, b"1")
    room = message_size(message) + levels * LEVEL_OVERHEAD + spare
    retained.maximum_bytes = retained.bytes + room
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


def test_a_plain_message_becomes_a_whole_one_and_stays_it() -> None:
    retained = RetainedMessages()
    message = plain("a", b"1", 5.0)
    assert retained.set_plain(message)
    assert retained.find("a", 9.0) == retained.find("#", 9.0) == [message]
    before = retained.bytes
    (whole,) = retained.match("#", 9.0)
    assert (whole.topic, whole.payload, whole.qos, whole.retain) == ("a", b"1", 1, True)
    assert (whole.client_id, whole.username, whole.received_at) == ("c", "u", 7)
    assert (whole.arrived, whole.commit_within) == (5.0, None)
    assert (message.client_id, message.username) == ("c", "u")
    assert retained.whole(whole) is retained.get("a") is whole
    assert (retained.bytes, message_size(whole)) == (before, before - LEVEL_OVERHEAD)


def test_a_message_that_was_replaced_becomes_whole_in_nobody_s_place() -> None:
    retained = RetainedMessages()
    first, second = plain("a", b"1"), plain("a", b"2")
    assert retained.set_plain(first)
    assert retained.set_plain(second)
    assert retained.whole(first).payload == b"1"
    assert retained.find("a", 0.0) == [second]
    assert retained.set(Message("a"))
    assert (len(retained), retained.bytes) == (0, 0)


@pytest.mark.parametrize(("bound", "taken"), [(0, True), (-1, False)])
def test_a_plain_message_has_the_same_bounds(bound: int, taken: bool) -> None:
    other = kept("a/b/c")
    retained = RetainedMessages(maximum_bytes=other.bytes + bound)
    assert retained.set_plain(plain("a/b/c", b"a/b/c")) == taken
    assert retained.set_plain(plain("d", b"1")) != taken
    assert [each.topic for each in retained.match("#", 0.0)] == (["a/b/c"] if taken else ["d"])


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


def test_a_message_that_a_plain_one_replaced_can_t_expire_any_more() -> None:
    retained = RetainedMessages()
    retained.set(Message("a", b"1", message_expiry=5))
    retained.set(Message("b", b"1", message_expiry=5))
    assert retained.set_plain(plain("a", b"2"))
    assert [each.topic for each in retained.find("#", 6.0)] == ["a"]
    assert retained.drop_expired(6.0) == ["b"]
    assert len(retained) == 1


@pytest.mark.parametrize("successor", [Message("a", b"2"), Message("a")])
def test_a_replaced_message_can_t_expire_any_more(successor: Message) -> None:
    retained = RetainedMessages()
    retained.set(Message("a", b"1", message_expiry=5))
    retained.set(successor)
    assert retained.drop_expired(6.0) == []
    assert len(retained) == (1 if successor.payload else 0)

import time

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from gateway.mqtt.publication import Publication
from gateway.routing.retained.retained import (
    LEVEL_OVERHEAD,
    SPARE_ENTRIES,
    Cursor,
    RetainedLog,
    RetainedMessages,
)
from tests.support.broker.publications import retained
from tests.support.broker.publications import retained as message
from tests.support.naive.matcher import matches
from tests.support.table import table


def kept(*topics: str) -> RetainedMessages:
    retained = RetainedMessages()
    for topic in topics:
        assert retained.set(message(topic, topic.encode()))
    return retained


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


@table(("topic_filter", "topics"), MATCHES_OF_SHARED)
def test_match_where_topics_share_levels(topic_filter: str, topics: list[str]) -> None:
    for order in (SHARED, SHARED[::-1]):
        messages = kept(*order)
        for found in (
            messages.find(topic_filter, 0.0),
            messages.read(topic_filter, messages.log.open(), len(order), 0.0),
        ):
            assert sorted(each.topic for each in found) == sorted(topics)
        assert [topic for topic in SHARED if matches(topic_filter, topic)] == topics


def test_an_empty_payload_removes_and_gives_everything_back() -> None:
    retained = kept("a/b/c", "a/b")
    assert retained.set(message("a/b/c"))
    assert retained.get("a/b/c") is None
    assert retained.get("a/b") is not None
    assert retained.set(message("a/b"))
    assert (len(retained), retained.bytes) == (0, 0)


def test_what_is_not_there_is_neither_removed_nor_renewed() -> None:
    retained = kept("a")
    assert retained.set(message("b"))
    assert len(retained) == 1
    retained.log.renew("b")
    assert retained.log.pop("b") is None
    assert retained.get("a") is not None


def test_full_by_bytes_refuses_and_keeps_the_last_message() -> None:
    retained = RetainedMessages(
        maximum_bytes=2 * (message("a", b"1234567890").size(0, 1) + LEVEL_OVERHEAD) - 2
    )
    assert retained.set(message("a", b"123456789"))
    assert retained.set(message("b", b"123456789"))
    assert not retained.set(message("a", b"1234567890"))
    assert not retained.set(message("a/b", b"1"))
    assert [each.packets.one(0) for each in retained.find("#", 0.0)] == [b"123456789"] * 2
    assert retained.set(message("a", b"x"))
    assert retained.set(message("b", b"12345678901234567"))
    assert retained.bytes == retained.maximum_bytes


@table(("spare", "accepted"), [(0, True), (-1, False)])
@table(
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
    one = message(topic, b"1")
    room = one.size(0, 1) + levels * LEVEL_OVERHEAD + spare
    retained.maximum_bytes = retained.bytes + room
    assert retained.accepts(one) is accepted
    assert retained.bytes < retained.maximum_bytes
    assert retained.set(one) is accepted


@pytest.mark.uncovered
def test_a_deep_topic_pays_for_its_levels() -> None:
    deepest = "/" * 65_535
    retained = RetainedMessages(maximum_bytes=16 * 1024 * 1024)
    assert not retained.set(message(deepest, b"1"))
    retained.maximum_bytes *= 2
    before = time.process_time()
    assert retained.set(message(deepest, b"1"))
    for topic_filter in (deepest, "#", "/+" + deepest[:-1], "+/" * 65_535):
        assert len(retained.find(topic_filter, 0.0)) == 1
    assert retained.set(message(deepest))
    assert retained.bytes == 0
    assert time.process_time() - before < 5  # what is quadratic takes minutes


@pytest.mark.parametrize("successor", [message("a", b"2"), message("a")])
def test_a_replaced_message_can_t_expire_any_more(successor: Publication) -> None:
    retained = RetainedMessages()
    retained.set(message("a", b"1", 5))
    retained.set(successor)
    assert not retained.drop_expired([*retained.expiring, "a"], 6.0)
    assert len(retained) == (1 if successor.packets.one(0) else 0)


@pytest.mark.parametrize("topic_filter", ["#", "+/x", "a/#", "+/+"])
def test_few_are_found_while_not_many_names_are_looked_at(topic_filter: str) -> None:
    retained = kept(*(f"{name}/{number}" for name in "ab" for number in range(20)), "a/x")
    cursor = retained.log.open()
    assert retained.few(topic_filter, cursor, 1, 0.0) is None
    few = retained.few(topic_filter, cursor, 100, 0.0)
    assert few is not None
    assert sorted(each.topic for each in few) == sorted(
        each.topic for each in retained.find(topic_filter, 0.0)
    )
    assert retained.few("a/x", cursor, 0, 0.0) == retained.find("a/x", 0.0)
    retained.set(message("a/new", b"1"))
    assert len(retained.few(topic_filter, cursor, 100, 0.0) or []) == len(few)


TOPICS = st.sampled_from("abcdef")


def filled(*topics: str) -> RetainedLog:
    log = RetainedLog()
    for topic in topics:
        log.append(topic, retained(topic, b"x"))
    return log


def read(log: RetainedLog, cursor: Cursor, most: int) -> str:
    return "".join([each.topic for each in log.read(cursor, most)])


def test_a_message_is_awaited_while_a_cursor_may_come_to_it() -> None:
    log = filled("a")
    assert not log.is_ahead("a")
    first, second = log.open(), log.open()
    log.append("b", retained("b", b"x"))
    assert [log.is_ahead(topic) for topic in "abc"] == [True, False, False]
    log.close(second)
    assert log.is_ahead("a")
    log.close(first)
    assert not log.is_ahead("a")


def test_empty_places_are_closed_up_and_cursors_stay_where_they_are() -> None:
    log = filled(*[str(number) for number in range(10)])
    begun, new = log.open(), log.open()
    log.read(begun, 3)
    log.pop("1")
    log.pop("7")
    log.append("last", retained("last", b"x"))
    for _ in range(SPARE_ENTRIES + 20):
        log.renew("last")
    assert log.index("last") < SPARE_ENTRIES + 20  # closed up, or it would be beyond
    assert [log.is_ahead(topic) for topic in ("9", "last")] == [True, False]
    assert (read(log, begun, 99), read(log, new, 99)) == ("345689", "02345689")
    log.close(begun)
    log.close(new)
    for number in range(2 * SPARE_ENTRIES):
        log.append(f"n{number}", retained(f"n{number}", b"x"))
        log.pop(f"n{number}")
    assert read(log, log.open(), SPARE_ENTRIES)[:2] == "02"


class LogAgainstList(RuleBasedStateMachine):
    """Cursors and a list of what each of them has yet to come to say the same."""

    cursors = Bundle("cursors")

    def __init__(self) -> None:
        super().__init__()
        self.log = RetainedLog()
        self.order: list[str] = []
        self.kept: dict[str, Publication] = {}
        self.ahead: dict[Cursor, list[str]] = {}

    @rule(topic=TOPICS)
    def keep(self, topic: str) -> None:
        message = retained(topic, b"x")
        if topic in self.kept:
            self.log.put(topic, message)
        else:
            self.log.append(topic, message)
            self.order.append(topic)
        self.kept[topic] = message

    @rule(topic=TOPICS)
    def forget(self, topic: str) -> None:
        assert self.log.pop(topic) is self.kept.pop(topic, None)
        self._leave(topic)

    @rule(topic=TOPICS, times=st.sampled_from([1, SPARE_ENTRIES + 10]))
    def renew(self, topic: str, times: int) -> None:
        for _ in range(times):
            self.log.renew(topic)
        self._leave(topic)
        if topic in self.kept:
            self.order.append(topic)

    def _leave(self, topic: str) -> None:
        for topics in [self.order, *self.ahead.values()]:
            if topic in topics:
                topics.remove(topic)

    @rule(target=cursors)
    def open(self) -> Cursor:
        cursor = self.log.open()
        self.ahead[cursor] = [*self.order]
        return cursor

    @rule(cursor=cursors, most=st.integers(1, 4))
    def read(self, cursor: Cursor, most: int) -> None:
        ahead = self.ahead[cursor]
        found = self.log.read(cursor, most)
        assert [each.topic for each in found] == ahead[: len(found)]
        assert all(self.kept[each.topic] is each for each in found)
        del ahead[: len(found)]
        assert len(found) <= most
        assert not ahead or not cursor.done

    @rule(cursor=consumes(cursors))
    def close(self, cursor: Cursor) -> None:
        ahead = self.ahead.pop(cursor)
        while not cursor.done:
            found = [each.topic for each in self.log.read(cursor, 1)]
            assert found == ahead[: len(found)]
            del ahead[: len(found)]
        assert ahead == []
        self.log.close(cursor)

    @invariant()
    def says_what_is_there(self) -> None:
        assert len(self.log) == len(self.kept)
        for topic in "abcdef":
            assert self.log.get(topic) is self.kept.get(topic)
            if any(topic in ahead for ahead in self.ahead.values()):
                assert self.log.is_ahead(topic)


TestLogAgainstList = LogAgainstList.TestCase

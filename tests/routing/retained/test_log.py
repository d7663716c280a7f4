"""Retained messages in order, against a list that is searched."""

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from gateway.mqtt.publication import Publication
from gateway.routing.retained.log import SPARE_ENTRIES, Cursor, RetainedLog
from tests.support.broker.publications import retained

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

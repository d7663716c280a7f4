"""Retained messages, against a dict."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from gateway.mqtt.publication import Publication
from gateway.routing.retained.retained import LEVEL_OVERHEAD, RetainedMessages
from tests.support.broker.publications import retained
from tests.support.broker.topics import TOPIC_FILTERS, TOPICS
from tests.support.naive.matcher import matches


class RetainedAgainstDict(RuleBasedStateMachine):
    """The tree and a dict of topic to message say the same after any history."""

    def __init__(self) -> None:
        super().__init__()
        self.retained = RetainedMessages(maximum_messages=4)
        self.kept: dict[str, Publication] = {}
        self.now = 0.0

    @rule(topic=TOPICS, payload=st.binary(max_size=2), expiry=st.none() | st.integers(0, 5))
    def set_message(self, topic: str, payload: bytes, expiry: int | None) -> None:
        message = retained(topic, payload, expiry, self.now)
        has_capacity = not payload or topic in self.kept or len(self.kept) < 4
        assert self.retained.accepts(message) == has_capacity
        assert self.retained.set(message) == has_capacity
        if not payload:
            self.kept.pop(topic, None)
        elif has_capacity:
            self.kept[topic] = message

    @rule(seconds=st.integers(1, 3), drop=st.booleans())
    def pass_time(self, seconds: int, drop: bool) -> None:
        self.now += seconds
        if drop:
            live = {topic: each for topic, each in self.kept.items() if not each.expired(self.now)}
            dropped = self.retained.drop_expired(self.retained.expiring, self.now)
            assert sorted(each.topic for each in dropped) == sorted(self.kept.keys() - live.keys())
            self.kept = live

    @rule(topic_filter=TOPIC_FILTERS)
    def match(self, topic_filter: str) -> None:
        expected = [
            message
            for topic, message in self.kept.items()
            if matches(topic_filter, topic) and not message.expired(self.now)
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

    @invariant()
    def accounts(self) -> None:
        levels = {
            tuple(names[: depth + 1])
            for names in (topic.split("/") for topic in self.kept)
            for depth in range(len(names))
        }
        sizes = sum(each.size(0, 1) for each in self.kept.values())
        assert self.retained.bytes == sizes + LEVEL_OVERHEAD * len(levels)
        assert len(self.retained) == len(self.kept)
        assert all(self.retained.get(topic) is each for topic, each in self.kept.items())


TestRetainedAgainstDict = RetainedAgainstDict.TestCase

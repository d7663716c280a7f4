"""Retained messages on disk against a dictionary, with crashes."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from gateway.routing.where.message import Message
from gateway.storage.gathering import PUT_OFF
from tests.support.sqlite_disk import SqliteDisk

TOPICS = ["a", "b", "a/b"]


class RetainedMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.disk = SqliteDisk()
        self.model: dict[str, bytes] = {}
        self.committed: dict[str, bytes] = {}
        self.crash()

    @rule()
    def crash(self) -> None:
        self.store, kept = self.disk.restore(0.0, 0)
        self.model = {each.topic: each.payload for each in kept.retained}
        assert self.model == self.committed

    @rule()
    def commit(self) -> None:
        self.disk.commit()
        self.committed = dict(self.model)

    @rule(
        topic=st.sampled_from(TOPICS),
        payload=st.sampled_from([b"", b"1", b"2"]),
        qos=st.integers(0, 2),
        within=st.sampled_from([0.0, 0.05, None]),
    )
    def keep(self, topic: str, payload: bytes, qos: int, within: float | None) -> None:
        message = Message(topic, payload, qos, retain=True)
        message.commit_within = within
        changes = self.store.changes
        self.store.keep_retained(message)
        if payload and within is not None:
            self.model[topic] = payload
            assert self.store.changes == changes + (qos > 0)
        else:
            self.model.pop(topic, None)

    @rule(topics=st.sets(st.sampled_from(TOPICS)))
    def forget(self, topics: set[str]) -> None:
        self.store.forget_retained(topics)
        for topic in topics:
            self.model.pop(topic, None)

    @invariant()
    def on_disk(self) -> None:
        assert self.disk.count("retained") == len(self.committed)


RetainedMachine.TestCase.settings = settings(max_examples=50, deadline=None)
TestRetainedAgainstDict = RetainedMachine.TestCase


def test_what_the_gateway_says_of_itself_is_not_kept() -> None:
    disk = SqliteDisk()
    store, _ = disk.restore(0.0, 0)
    store.keep_retained(Message("$SYS/broker/uptime", b"1", 1, retain=True))
    assert (disk.wanted, disk.commit()) == (None, 0)


def test_qos_0_is_on_disk_within_a_second() -> None:
    disk = SqliteDisk()
    store, _ = disk.restore(0.0, 0)
    store.keep_retained(Message("a", b"1", 0, retain=True))
    assert disk.wanted == PUT_OFF
    store.keep_retained(Message("a", b"2", 1, retain=True))
    assert disk.wanted == 0.0
    assert disk.commit() == 1  # of one topic the last

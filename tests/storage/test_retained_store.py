"""Retained messages on disk against a dictionary, with crashes."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from gateway.mqtt.plain_message import Origin, PlainMessage
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

    @rule(
        topics=st.lists(st.sampled_from(TOPICS), min_size=1),
        payload=st.sampled_from([b"1", b"2"]),
        qos=st.integers(0, 1),
        within=st.sampled_from([0.0, 0.05, None]),
    )
    def keep_run(self, topics: list[str], payload: bytes, qos: int, within: float | None) -> None:
        origin = Origin("c", "u", qos, 1, 0.0, within)
        changes = self.store.changes
        self.store.keep_retained_run([PlainMessage(topic, payload, origin) for topic in topics])
        if within is not None:
            self.model.update(dict.fromkeys(topics, payload))
            assert self.store.changes == changes + qos
        for topic in topics if within is None else ():
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


def test_messages_of_a_run_come_back_as_they_were() -> None:
    disk = SqliteDisk()
    store, _ = disk.restore(0.0, 0)
    origin = Origin("c", "u", 1, 1_000, 5.0, 0.0)
    store.keep_retained_run([PlainMessage("ä", b"1", origin), PlainMessage("b", b"22", origin)])
    assert disk.commit() == 2
    _, kept = disk.restore(7.0, 3_000)
    assert sorted(each.topic for each in kept.retained) == ["b", "ä"]
    for message in kept.retained:
        assert (message.client_id, message.username, message.received_at) == ("c", "u", 1_000)
        assert (message.qos, message.retain) == (1, True)


def test_qos_0_is_on_disk_within_a_second() -> None:
    disk = SqliteDisk()
    store, _ = disk.restore(0.0, 0)
    store.keep_retained(Message("a", b"1", 0, retain=True))
    assert disk.wanted == PUT_OFF
    store.keep_retained(Message("a", b"2", 1, retain=True))
    assert disk.wanted == 0.0
    assert disk.commit() == 1  # of one topic the last

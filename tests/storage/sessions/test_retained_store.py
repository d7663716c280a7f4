"""Retained messages on disk against a dictionary, with crashes."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from gateway.counters import Counters
from gateway.mqtt.publication import Publication
from gateway.mqtt.publish_encoder import make_publication
from gateway.session.restored import CLOCK_SET
from gateway.storage.engine.pending_batch import PUT_OFF
from gateway.storage.sessions import retained_store
from tests.support.disk.sqlite_disk import SqliteDisk

TOPICS = ["a", "b", "a/b"]


def retained(topic: str, payload: bytes, qos: int = 1) -> Publication:
    publication = make_publication(topic, payload, qos, True)
    publication.client_id, publication.username = "c", "u"
    return publication


class RetainedMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.disk = SqliteDisk()
        self.at_once = retained_store.LATER_AT_ONCE
        self.model: dict[str, bytes] = {}
        self.committed: dict[str, bytes] = {}
        self.crash()

    @rule()
    def crash(self) -> None:
        self.store, kept = self.disk.restore(0.0, 0)
        self.model = {each.topic: each.packets.one(0) for each in kept.retained}
        assert self.model == self.committed

    @rule()
    def commit(self) -> None:
        self.disk.commit()
        while self.disk.wanted is not None:  # more than goes with one batch
            self.disk.commit()
        self.committed = dict(self.model)

    @rule(
        topic=st.sampled_from(TOPICS),
        payload=st.sampled_from([b"", b"1", b"2"]),
        qos=st.integers(0, 2),
        commit_within=st.sampled_from([0.0, 0.05, None]),
    )
    def keep(self, topic: str, payload: bytes, qos: int, commit_within: float | None) -> None:
        publication = retained(topic, payload, qos)
        publication.commit_within = commit_within
        changes = self.disk.pending.changes - self.disk.pending_rows
        self.store.store_retained(publication)
        if payload and commit_within is not None:
            self.model[topic] = payload
            noted = self.disk.pending.changes - self.disk.pending_rows
            assert noted == changes + (qos > 0)
        else:
            self.model.pop(topic, None)

    @rule(changes=st.integers(1, 3))
    def make_rows_of_fewer_at_once(self, changes: int) -> None:
        retained_store.LATER_AT_ONCE = retained_store.ROWS_AT_ONCE = changes

    def teardown(self) -> None:
        retained_store.LATER_AT_ONCE = retained_store.ROWS_AT_ONCE = self.at_once

    @rule(topics=st.sets(st.sampled_from(TOPICS)))
    def forget(self, topics: set[str]) -> None:
        self.store.forget_retained(topics)
        for topic in topics:
            self.model.pop(topic, None)

    @invariant()
    def on_disk(self) -> None:
        assert self.disk.count("retained") == len(self.committed)


RetainedMachine.TestCase.settings = settings(max_examples=50, deadline=None)
TestRetainedAgainstDict = pytest.mark.uncovered(RetainedMachine.TestCase)


def test_what_the_gateway_says_of_itself_is_not_kept() -> None:
    disk = SqliteDisk()
    store, _ = disk.restore(0.0, 0)
    store.store_retained(retained("$SYS/broker/uptime", b"1", 1))
    assert (disk.wanted, disk.commit()) == (None, 0)


def test_messages_come_back_as_they_were() -> None:
    disk = SqliteDisk()
    store, _ = disk.restore(0.0, 0)
    then = CLOCK_SET + 1_000
    for topic, payload in (("ä", b"1"), ("b", b"22")):
        publication = retained(topic, payload)
        publication.received_at = then
        store.store_retained(publication)
    assert disk.commit() == 2
    _, kept = disk.restore(7.0, then + 2_000)
    assert [(each.topic, each.packets.one(0)) for each in kept.retained] == [
        ("ä", b"1"),
        ("b", b"22"),
    ]
    for each in kept.retained:
        assert (each.client_id, each.username, each.received_at) == ("c", "u", then)
        assert (each.qos, each.retain, each.commit_within) == (1, True, 0.0)
        assert each.arrived == 5.0
    first, second = kept.retained
    assert (first.client_id is second.client_id, first.username is second.username) == (True, True)


def test_qos_0_is_on_disk_within_a_second() -> None:
    disk = SqliteDisk()
    store, _ = disk.restore(0.0, 0)
    store.store_retained(retained("a", b"1", 0))
    assert disk.wanted == PUT_OFF
    store.store_retained(retained("a", b"2", 1))
    assert disk.wanted == 0.0
    assert disk.commit() == 1  # of one topic the last


def test_many_changes_that_nobody_waits_for_go_in_pieces() -> None:
    disk = SqliteDisk()
    store, _ = disk.restore(0.0, 0)
    at_once = retained_store.LATER_AT_ONCE
    for number in range(2 * at_once):
        store.store_retained(retained(f"t/{number}", b"1", 0))
    store.store_retained(retained(f"t/{at_once}", b"2", 1))
    assert disk.commit() == at_once + 1
    assert disk.wanted == disk.commit_delay / 2
    assert disk.commit() == at_once - 1
    assert disk.count("retained") == 2 * at_once


def test_what_publishers_wait_for_counts_as_rows_while_the_disk_is_slow() -> None:
    disk = SqliteDisk()
    store, _ = disk.restore(0.0, 0)
    at_once = retained_store.ROWS_AT_ONCE
    for payload in (b"1", b"2"):
        for number in range(at_once):
            store.store_retained(retained(f"t/{number}", payload, 1))
    store.store_retained(retained("t/0", b"", 1))
    assert disk.pending_rows == 2 * at_once
    assert disk.commit() == 2 * at_once + 1
    assert {payload for _, _, payload in rows(disk)} == {b"2"}
    assert disk.count("retained") == at_once - 1


def rows(disk: SqliteDisk) -> list[tuple[int, str, bytes]]:
    """Return number, topic and payload of each row."""
    return disk.connection.execute("SELECT id, topic, payload FROM retained ORDER BY id").fetchall()


def keep_all(disk: SqliteDisk, messages: dict[str, bytes]) -> None:
    """Keep what is new since the last start, after a restart."""
    store, _ = disk.restore(0.0, 0)
    for topic, payload in messages.items():
        store.store_retained(retained(topic, payload, 1))
    disk.commit()


def test_a_topic_keeps_its_row_and_a_new_one_goes_behind_all_others() -> None:
    disk = SqliteDisk()
    keep_all(disk, {"a": b"1", "b": b"1", "c": b"1"})
    keep_all(disk, {"d": b"1", "a": b"2"})
    assert rows(disk) == [(1, "a", b"2"), (2, "b", b"1"), (3, "c", b"1"), (4, "d", b"1")]
    keep_all(disk, {"b": b"", "c": b"2"})
    keep_all(disk, {"b": b"3"})
    assert rows(disk) == [(1, "a", b"2"), (3, "c", b"2"), (4, "d", b"1"), (5, "b", b"3")]


def test_what_goes_and_comes_again_before_a_commit_keeps_its_row() -> None:
    disk = SqliteDisk()
    keep_all(disk, {"a": b"1", "b": b"1"})
    store, _ = disk.restore(0.0, 0)
    for payload in (b"", b"2"):
        store.store_retained(retained("a", payload, 1))
    store.store_retained(retained("c", b"1", 1))
    store.store_retained(retained("c", b"", 1))
    assert disk.commit() == 1
    assert rows(disk) == [(1, "a", b"2"), (2, "b", b"1")]


def test_of_two_rows_of_a_topic_the_newer_counts_and_the_other_goes() -> None:
    disk = SqliteDisk()
    keep_all(disk, {"a": b"1", "b": b"1"})
    disk.connection.execute("UPDATE retained SET topic = 'a', payload = x'32' WHERE id = 2")
    store, kept = disk.restore(0.0, 0)
    assert [(each.topic, each.packets.one(0)) for each in kept.retained] == [("a", b"2")]
    disk.commit()
    assert rows(disk) == [(2, "a", b"2")]
    store.forget_retained(["a"])
    disk.commit()
    assert rows(disk) == []


def test_a_message_takes_the_place_of_one_that_cannot_be_read() -> None:
    disk = SqliteDisk()
    keep_all(disk, {"a": b"1"})
    disk.connection.execute("UPDATE retained SET qos = 3")
    counters = Counters()
    store, kept = disk.restore(0.0, 0, counters)
    assert (kept.retained, counters.count("tidegate/storage/unreadable")) == ([], 1)
    store.store_retained(retained("a", b"2", 1))
    disk.commit()
    assert rows(disk) == [(1, "a", b"2")]

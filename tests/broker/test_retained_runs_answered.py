"""When runs of retained messages are answered."""

import pytest

from gateway.broker.durability_classes import DurabilityEntry
from gateway.broker.retained_runs import ANSWERED_AT_ONCE, KEPT_AT_ONCE
from gateway.broker.settings import BrokerSettings
from gateway.mqtt.encode import encode
from gateway.mqtt.packets import MQTT_5, PubAck
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.broker_harness import Harness
from tests.support.memory_client import MemoryClient
from tests.support.retained_runs import NOBODY, kept, retained
from tests.support.sqlite_disk import SqliteDisk

CLASSES = (
    DurabilityEntry(None, topic_filter="memory/#"),
    DurabilityEntry(0.05, topic_filter="batch/#"),
)


def test_each_message_has_the_class_of_its_topic(passed_on: list[bool]) -> None:
    harness = Harness(BrokerSettings(durability=CLASSES))
    topics = ["a", "b", "memory/a", "memory/b", "batch/a", "c"]
    harness.connect().send(*retained(topics))
    assert passed_on == [True] * 4
    messages = [harness.broker.retained.get(topic) for topic in topics]
    classes = [None if each is None else each.commit_within for each in messages]
    assert classes == [0.0, 0.0, None, None, 0.05, 0.0]


def on_disk() -> tuple[Harness, SqliteDisk, MemoryClient]:
    disk = SqliteDisk()
    store, _ = disk.restore(0.0, 0)
    harness = Harness(BrokerSettings(durability=CLASSES), disk, store)
    return harness, disk, harness.connect()


def test_acknowledgements_wait_for_the_disk() -> None:
    harness, disk, publisher = on_disk()
    publisher.send(*retained(["a", "b"]))
    assert publisher.take() == []
    harness.commit()
    assert publisher.take() == [PubAck(1, NOBODY), PubAck(2, NOBODY)]
    _, found = disk.restore(0.0, 0)
    assert sorted(each.topic for each in found.retained) == ["a", "b"]


def test_what_is_kept_in_memory_alone_is_answered_at_once() -> None:
    harness, disk, publisher = on_disk()
    publisher.send(*retained(["memory/a", "memory/b"]))
    assert publisher.take() == [PubAck(1, NOBODY), PubAck(2, NOBODY)]
    assert disk.wanted is None
    assert len(kept(harness)) == 2


@pytest.mark.parametrize(
    ("count", "pauses"),
    [(ANSWERED_AT_ONCE - 1, 0), (ANSWERED_AT_ONCE, 0), (ANSWERED_AT_ONCE + 1, 1), (120, 2)],
)
def test_what_waits_for_no_disk_is_answered_before_all_is_handled(count: int, pauses: int) -> None:
    harness, _, publisher = on_disk()
    topics = [f"memory/{number}" for number in range(count)]
    data = b"".join(encode(each, MQTT_5) for each in retained(topics))
    answered = []
    while harness.broker.receive(publisher.client, data, harness.instant):
        data = b""
        harness.settle()
        answered.append(len(publisher.take()))
    harness.settle()
    assert answered == [ANSWERED_AT_ONCE] * pauses
    assert len(publisher.take()) == count - sum(answered)
    assert list(kept(harness)) == topics


@pytest.mark.parametrize("qos", [0, 1])
@pytest.mark.parametrize(
    ("count", "pauses"), [(KEPT_AT_ONCE - 1, 0), (KEPT_AT_ONCE, 0), (2 * KEPT_AT_ONCE + 1, 2)]
)
def test_others_may_have_their_turn_meanwhile(count: int, pauses: int, qos: int) -> None:
    harness, _, publisher = on_disk()
    topics = [f"a/{number}" for number in range(count)]
    data = b"".join(encode(each, MQTT_5) for each in retained(topics, qos))
    taken = []
    while harness.broker.receive(publisher.client, data, harness.instant):
        data = b""
        harness.settle()
        taken.append(len(kept(harness)))
    assert taken == [KEPT_AT_ONCE * (each + 1) for each in range(pauses)]
    assert list(kept(harness)) == topics


@pytest.mark.parametrize(("topic", "qos"), [("a", 1), ("a", 0), ("memory/a", 0)])
def test_what_waits_for_the_disk_or_is_not_answered_is_handled_at_once(
    topic: str, qos: int, passed_on: list[bool]
) -> None:
    harness, _, publisher = on_disk()
    publisher.send(*retained([f"{topic}/{number}" for number in range(120)], qos))
    assert passed_on == [True]
    assert len(kept(harness)) == 120


def test_qos_0_waits_for_nothing_and_is_on_disk_soon() -> None:
    _, disk, publisher = on_disk()
    publisher.send(*retained(["a", "b"], qos=0))
    assert publisher.take() == []
    assert disk.commit() == 2


@pytest.mark.parametrize(
    ("topic", "qos", "refused"), [("a", 1, 1), ("a", 0, 0), ("memory/a", 1, 0)]
)
def test_while_nothing_can_be_promised_only_promises_are_refused(
    topic: str, qos: int, refused: int
) -> None:
    harness, disk, publisher = on_disk()
    disk.full = True
    publisher.send(*retained([topic], qos))
    assert harness.counters.count("tidegate/storage/rejected") == refused
    assert len(kept(harness)) == 1 - refused
    code = ReasonCode.QUOTA_EXCEEDED if refused else NOBODY
    assert publisher.take() == [PubAck(1, code)] * qos

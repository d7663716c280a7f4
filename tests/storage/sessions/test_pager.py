"""Queues that are larger than memory: read in order, and bounded as promised."""

import pytest

from gateway.mqtt.message import Message
from gateway.mqtt.reason_codes import ReasonCode
from gateway.settings.broker import BrokerSettings
from gateway.settings.when_full import WhenFull
from gateway.storage.sessions.delivery_row import DISK_OVERHEAD
from tests.support.broker.durable_broker import DurableHarness, away
from tests.support.broker.paged_queues import HEAD, MESSAGES, drain, fill, numbers

pytestmark = pytest.mark.usefixtures("small_pages")

ROW = DISK_OVERHEAD + len(b"\x32\x00\x00\x01t\x00\x01")
"""Bytes that a message takes of the disk beside its payload."""


@pytest.mark.parametrize("crash", [False, True])
def test_only_the_head_is_in_memory_and_all_comes_in_order(
    harness: DurableHarness, crash: bool
) -> None:
    away(harness)
    fill(harness)
    if crash:
        harness.crash()
    memory = harness.broker.queue_memory
    assert (memory.deliveries, memory.paged) == (HEAD, MESSAGES - HEAD)
    assert memory.disk_bytes == sum(ROW + len(payload) for payload in numbers())
    assert drain(harness.persistent()) == numbers()
    assert (memory.paged, memory.disk_bytes, memory.bytes) == (0, 0, 0)
    assert (harness.disk.count("message"), harness.disk.count("delivery")) == (0, 0)


def test_messages_kept_in_memory_alone_keep_their_place(harness: DurableHarness) -> None:
    away(harness)
    for number in range(MESSAGES):
        message = Message("t", b"%d" % number, 1, arrived=harness.now, received_at=harness.wall)
        message.commit_within = None if number % 3 else 0.0
        harness.broker.publish(message, harness.instant)
        harness.settle()
    assert harness.broker.queue_memory.paged
    assert drain(harness.persistent()) == numbers()


@pytest.mark.parametrize("crash", [False, True])
def test_the_oldest_are_dropped_also_where_they_are_on_disk(crash: bool) -> None:
    harness = DurableHarness(
        BrokerSettings(maximum_queued_messages=10, queue_when_full=WhenFull.DROP_OLDEST)
    )
    away(harness)
    fill(harness, 10)
    if crash:
        harness.crash()
    harness.commits = False  # nothing is read back meanwhile
    for number in range(10, MESSAGES):
        assert harness.publish("t", b"%d" % number, 1) is ReasonCode.SUCCESS
    harness.commits = True
    harness.settle()
    assert len(harness.session().queue) <= 11
    found = drain(harness.persistent())
    assert found == numbers(first=MESSAGES - len(found))
    dropped = harness.counters.count("tidegate/queues/dropped_oldest")
    assert dropped == MESSAGES - len(found)


def test_the_bounds_count_bytes_on_disk() -> None:
    harness = DurableHarness(
        BrokerSettings(maximum_queued_bytes=10_000, queue_when_full=WhenFull.REJECT)
    )
    away(harness)
    accepted = 0
    while harness.publish("t", b"x" * 900, 1) is ReasonCode.SUCCESS:
        accepted += 1
    assert accepted == 10
    harness.crash()
    assert harness.publish("t", b"", 1) is ReasonCode.QUOTA_EXCEEDED
    assert harness.counters.count("tidegate/queues/rejected") == 1


def test_a_retained_message_is_kept_for_each_of_its_late_subscribers(
    harness: DurableHarness,
) -> None:
    harness.publish("t", b"kept", 1, retain=True)
    for name in ("a", "b"):
        client = harness.persistent(name)
        client.subscribe("t", 1)
        client.drop()
    harness.settle()
    client = harness.persistent("a")
    drain(client)
    harness.crash()
    assert b"kept" in drain(harness.persistent("b"))

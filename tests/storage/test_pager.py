"""Queues that are larger than memory: read in order, deleted bit by bit, bounded as promised."""

import sqlite3
from itertools import pairwise

import pytest

from gateway.broker.settings import BrokerSettings
from gateway.mqtt.packets import Connect, Disconnect, Packet, PubAck, Publish
from gateway.mqtt.reason_codes import ReasonCode
from gateway.routing.where.message import Message
from gateway.session import delivery_queue
from gateway.storage import message_store, pager, restore
from tests.support.durable_broker import DurableHarness, away
from tests.support.memory_client import MemoryClient

HEAD = 4
MESSAGES = 30


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery_queue, "HEAD_MESSAGES", HEAD)
    monkeypatch.setattr(restore, "HEAD_MESSAGES", HEAD)
    monkeypatch.setattr(pager, "PAGE_MESSAGES", 3)
    monkeypatch.setattr(pager, "STEP_ROWS", 5)
    monkeypatch.setattr(message_store, "MAXIMUM_DEAD_BYTES", 1)


@pytest.fixture
def harness() -> DurableHarness:
    return DurableHarness(BrokerSettings(maximum_inflight=2))


def fill(harness: DurableHarness, messages: int = MESSAGES, **more: object) -> None:
    for number in range(messages):
        code = harness.publish("t", b"%d" % number, 1, **more)
        assert code is ReasonCode.SUCCESS


def begin_anew(harness: DurableHarness) -> None:
    """End the session by a connection that wants none of it."""
    client = harness.open()
    client.send(Connect("c", clean_start=True))
    client.drop()


def drain(client: MemoryClient) -> list[bytes]:
    """Return everything that comes while each message is acknowledged."""
    found: list[bytes] = []
    packets: list[Packet] = client.take()
    while packets:
        for packet in packets:
            if isinstance(packet, Publish):
                found.append(packet.payload)
                client.send(PubAck(packet.packet_id))
        packets = client.take()
    return found


def numbers(messages: int = MESSAGES, first: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(first, messages)]


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
    assert memory.disk_bytes == sum(97 + len(payload) for payload in numbers())
    assert drain(harness.persistent()) == numbers()
    assert (memory.paged, memory.disk_bytes, memory.bytes) == (0, 0, 0)
    assert (harness.disk.count("message"), harness.disk.count("delivery")) == (0, 0)


@pytest.mark.parametrize("commits", [False, True])
@pytest.mark.parametrize("crash", [False, True])
def test_runs_are_queued_like_single_messages(
    harness: DurableHarness, commits: bool, crash: bool
) -> None:
    away(harness)
    publisher = harness.connect("publisher")
    harness.commits = commits
    for first in (0, 3, 13):
        count = {0: 3, 3: 10, 13: MESSAGES - 13}[first]
        publisher.send(
            *(Publish("t", b"%d" % n, 1, packet_id=n + 1) for n in range(first, first + count))
        )
    harness.commits = True
    harness.settle()
    assert len(publisher.take()) == MESSAGES
    if crash:
        harness.crash()
    memory = harness.broker.queue_memory
    assert (memory.deliveries, memory.paged) == (13, MESSAGES - 13)  # the last run exceeds HEAD
    assert drain(harness.persistent("c")) == numbers()
    assert (memory.bytes, memory.disk_bytes, memory.paged_bytes) == (0, 0, 0)


def test_crashes_in_the_middle_lose_nothing_and_keep_the_order(harness: DurableHarness) -> None:
    away(harness)
    fill(harness)
    got: list[bytes] = []
    while len(got) < MESSAGES:
        client = harness.persistent()
        for packet in client.take():
            if isinstance(packet, Publish):
                if packet.payload not in got:
                    got.append(packet.payload)
                client.send(PubAck(packet.packet_id))
        harness.crash()
    assert got == numbers()


def test_what_is_published_while_a_page_is_read_comes_behind_it(harness: DurableHarness) -> None:
    away(harness)
    fill(harness)
    client = harness.persistent()
    harness.commits = False
    harness.publish("t", b"late", 1)
    found = drain(client)
    harness.commit()
    harness.commits = True
    assert found + drain(client) == [*numbers(), b"late"]


def test_messages_kept_in_memory_alone_keep_their_place(harness: DurableHarness) -> None:
    away(harness)
    for number in range(MESSAGES):
        message = Message("t", b"%d" % number, 1, arrived=harness.now, received_at=harness.wall)
        message.commit_within = None if number % 3 else 0.0
        harness.broker.publish(message, harness.instant)
        harness.settle()
    assert harness.broker.queue_memory.paged
    assert drain(harness.persistent()) == numbers()


@pytest.mark.parametrize("absent", [["c"], ["c", "d"]])
def test_what_expires_on_disk_goes_with_a_sweep(harness: DurableHarness, absent: list[str]) -> None:
    for name in absent:
        away(harness, name=name)
    fill(harness, message_expiry=5)
    harness.publish("t", b"stays", 1, message_expiry=60)
    harness.pass_time(20.0)
    harness.settle()
    assert harness.disk.count("message") == 1
    assert harness.disk.count("delivery") == len(absent)
    assert harness.counters.count("publish/messages/expired") == MESSAGES * len(absent)
    client = harness.persistent()
    (packet,) = [each for each in client.take() if isinstance(each, Publish)]
    assert packet.payload == b"stays"
    assert packet.properties.message_expiry_interval == 40


def test_a_session_that_ends_is_deleted_in_steps(harness: DurableHarness) -> None:
    away(harness)
    away(harness, name="other")
    fill(harness)
    harness.commits = False
    begin_anew(harness)
    left = [harness.disk.count("delivery")]
    while harness.disk.mark():
        harness.commit()
        left.append(harness.disk.count("delivery"))
    steps = [before - after for before, after in pairwise(left)]
    assert max(steps) <= pager.STEP_ROWS + HEAD
    harness.commits = True
    harness.settle()
    assert (harness.disk.count("delivery"), harness.disk.count("message")) == (MESSAGES, MESSAGES)
    assert drain(harness.persistent("other")) == numbers()
    assert harness.disk.count("message") == 0


def test_a_crash_in_the_middle_of_that_goes_on_with_it(harness: DurableHarness) -> None:
    away(harness)
    fill(harness)
    harness.commits = False
    begin_anew(harness)
    harness.commit()
    assert harness.disk.count("delivery")
    harness.commits = True
    harness.crash()
    away(harness, name="new")
    fill(harness, 3)
    assert harness.disk.count("delivery") == harness.disk.count("message") == 3
    assert harness.broker.queue_memory.disk_bytes > 0


@pytest.mark.parametrize("page_bytes", [1_500, 1_000_000])
def test_another_member_gets_what_a_session_left_on_disk(
    harness: DurableHarness, monkeypatch: pytest.MonkeyPatch, page_bytes: int
) -> None:
    monkeypatch.setattr(pager, "PAGE_BYTES", page_bytes)
    away(harness, "$share/g/t", "c")
    fill(harness)
    away(harness, "$share/g/t", "d")
    harness.persistent("c", clean_start=True).drop()
    harness.settle()
    assert drain(harness.persistent("d")) == numbers()
    assert harness.disk.count("message") == harness.disk.count("delivery") == 0


def test_a_connection_without_expiry_still_gets_what_waits_on_disk(harness: DurableHarness) -> None:
    away(harness)
    fill(harness)
    client = harness.open()
    client.send(Connect("c", clean_start=False))
    assert drain(client) == numbers()
    client.send(Disconnect())
    assert harness.disk.count("session") == 0


def test_such_a_session_ends_with_a_crash(harness: DurableHarness) -> None:
    away(harness)
    fill(harness)
    client = harness.open()
    client.send(Connect("c", clean_start=False))
    client.take()
    harness.crash()
    assert harness.broker.persistent_sessions == 0
    assert not harness.persistent("c").connack.session_present
    harness.settle()
    assert harness.disk.count("delivery") == 0


@pytest.mark.parametrize("crash", [False, True])
def test_the_oldest_are_dropped_also_where_they_are_on_disk(crash: bool) -> None:
    harness = DurableHarness(
        BrokerSettings(maximum_queued_messages=10, queue_when_full="drop-oldest")
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
    harness = DurableHarness(BrokerSettings(maximum_queued_bytes=10_000))
    away(harness)
    accepted = 0
    while harness.publish("t", b"x" * 900, 1) is ReasonCode.SUCCESS:
        accepted += 1
    assert accepted == 11
    harness.crash()
    assert harness.publish("t", b"", 1) is ReasonCode.QUOTA_EXCEEDED
    assert harness.counters.count("tidegate/queues/rejected") == 1


def test_a_disk_that_cannot_be_read_is_asked_again(
    harness: DurableHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    away(harness)
    fill(harness)

    async def broken(*_: object) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    with monkeypatch.context() as patch:
        patch.setattr(harness.disk, "query", broken)
        client = harness.persistent()
        found = drain(client)
        assert len(found) < MESSAGES
    (again,) = harness.disk.retries
    again()
    harness.settle()
    assert found + drain(client) == numbers()


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE delivery SET message = -1 WHERE place = 7",
        "UPDATE delivery SET packet_id = 65536, qos = 3 WHERE place = 7",
        "UPDATE message SET topic = CAST(x'ff' AS TEXT) WHERE id = 7",
    ],
)
def test_what_cannot_be_read_is_left_out_and_no_more(harness: DurableHarness, damage: str) -> None:
    away(harness)
    fill(harness)
    harness.disk.connection.execute(damage)
    assert drain(harness.persistent("c")) == [*numbers(6), *numbers(first=7)]
    assert harness.counters.count("tidegate/storage/unreadable") >= 1


def test_a_page_that_cannot_be_read_is_the_end(harness: DurableHarness) -> None:
    away(harness)
    fill(harness)
    harness.disk.connection.execute("UPDATE delivery SET qos = 3 WHERE place > 6")
    client = harness.persistent("c")
    assert drain(client) == numbers(6)
    assert not len(harness.session().queue)


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


def test_one_sweep_at_a_time(harness: DurableHarness) -> None:
    away(harness)
    fill(harness, message_expiry=5)
    harness.pass_time(6.0)
    harness.broker.store.sweep()
    harness.broker.store.sweep()
    assert len(harness.disk.steps) == 1
    harness.settle()
    assert harness.broker.queue_memory.paged == 0

"""What sessions are owed after a restart comes in order, also when their heads fill the memory."""

import pytest

from gateway.mqtt.packets import PubAck, Publish
from gateway.session.queue import delivery_queue
from gateway.session.queue import memory as queue_memory
from gateway.settings.broker import BrokerSettings
from gateway.storage.sessions import pager, restore
from tests.support.broker.durable_broker import DurableHarness
from tests.support.broker.memory_client import MemoryClient
from tests.support.broker.paged_queues import HEAD, MESSAGES, drain, numbers

PAGE = 3
RUN = 5
NAMES = ("a", "b", "c")

HEAD_BYTES = [1, 700, 1_500, 4_000]
"""Bounds that the first session's head passes at once or in the middle, or that of another."""


@pytest.fixture(autouse=True)
def small_heads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery_queue, "HEAD_MESSAGES", HEAD)
    monkeypatch.setattr(restore, "HEAD_MESSAGES", HEAD)
    monkeypatch.setattr(pager, "PAGE_MESSAGES", PAGE)


@pytest.fixture(params=HEAD_BYTES)
def head_bytes(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    for module in (queue_memory, restore):
        monkeypatch.setattr(module, "MAXIMUM_HEAD_BYTES", request.param)


def subscribed(harness: DurableHarness, name: str) -> MemoryClient:
    client = harness.persistent(name)
    client.subscribe(f"t/{name}", 1)
    return client


def fill(harness: DurableHarness, name: str, run: int, messages: int = MESSAGES) -> None:
    """Publish so many numbers, `run` of them one behind the other in a read."""
    publisher = harness.connect("publisher")
    for first in range(0, messages, run):
        numbers = range(first, first + run)
        publisher.send(*(Publish(f"t/{name}", b"%d" % n, 1, packet_id=n + 1) for n in numbers))
        harness.settle()
    assert len(publisher.take()) == messages


@pytest.mark.uncovered
@pytest.mark.usefixtures("head_bytes")
@pytest.mark.parametrize("run", [1, RUN])
@pytest.mark.parametrize("connected", [False, True])
def test_the_order_is_kept_when_heads_fill_the_memory(
    harness: DurableHarness, run: int, connected: bool
) -> None:
    for name in NAMES:
        subscribed(harness, name).drop()
        fill(harness, name, run)
    if connected:
        for name in NAMES:
            harness.persistent(name)
    harness.crash()
    memory = harness.broker.queue_memory
    assert memory.heads_full
    if not connected:
        assert memory.deliveries <= len(NAMES) * max(HEAD, 2 * run - 1)
    for name in NAMES:
        fill(harness, name, run, RUN)  # comes behind all that
    expected = [*numbers(), *numbers(RUN)]
    found = {name: drain(harness.persistent(name)) for name in NAMES}
    assert found == dict.fromkeys(NAMES, expected)
    assert (memory.bytes, memory.disk_bytes, memory.paged, memory.paged_bytes) == (0, 0, 0, 0)


@pytest.mark.usefixtures("head_bytes")
@pytest.mark.parametrize("head_bytes", [1], indirect=True)
def test_what_is_next_leaves_whatever_other_sessions_hold(harness: DurableHarness) -> None:
    subscribed(harness, "a").drop()
    fill(harness, "a", 1)
    client = subscribed(harness, "b")
    harness.commits = False  # the third waits for the window, and for the disk
    for number in range(3):
        harness.publish("t/b", b"%d" % number, 1)
    assert drain(client) == numbers(3)


def test_a_run_whose_last_message_is_gone_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restore, "HEAD_BYTES", 1)  # the second run is read with a page
    harness = DurableHarness(BrokerSettings(maximum_inflight=2 * RUN))
    subscribed(harness, "a").drop()
    fill(harness, "a", RUN, 4 * RUN)
    client = harness.persistent("a")
    sent = [each for each in client.take() if isinstance(each, Publish)]
    assert len(sent) == 2 * RUN
    for last in (sent[RUN - 1], sent[-1]):
        client.send(PubAck(last.packet_id))
    client.take()
    harness.settle()
    harness.crash()
    gone = {RUN - 1, 2 * RUN - 1}
    expected = [b"%d" % number for number in range(4 * RUN) if number not in gone]
    memory = harness.broker.queue_memory
    assert (memory.deliveries, memory.paged) == (RUN - 1, len(expected) - RUN + 1)
    assert drain(harness.persistent("a")) == expected
    assert (memory.bytes, memory.disk_bytes, memory.paged, memory.paged_bytes) == (0, 0, 0, 0)


@pytest.mark.parametrize("head", ["messages", "bytes"])
def test_what_was_sent_at_qos_2_is_known_behind_many_of_qos_1(
    monkeypatch: pytest.MonkeyPatch, head: str
) -> None:
    """Its packet identifier is on disk, and theirs are not: the client was there to the end."""
    monkeypatch.setattr(restore, "HEAD_BYTES", 1 if head == "bytes" else 1_000_000)
    harness = DurableHarness()
    client = harness.persistent("a")
    client.subscribe("t", 2)
    for number in range(MESSAGES):
        harness.publish("t", b"%d" % number, 1)
    harness.publish("t", b"last", 2)
    sent = [each for each in client.take() if isinstance(each, Publish)]
    assert len(sent) == MESSAGES + 1
    harness.settings = BrokerSettings(maximum_inflight=MESSAGES // 2)
    harness.crash()
    harness.settings = BrokerSettings()
    client = harness.persistent("a")
    again: list[Publish] = []
    while packets := [each for each in client.take() if isinstance(each, Publish)]:
        again += packets
        client.send(*(PubAck(each.packet_id) for each in packets if each.qos == 1))
    assert [(each.payload, each.dup) for each in again] == [(each.payload, True) for each in sent]
    assert again[-1].packet_id == sent[-1].packet_id

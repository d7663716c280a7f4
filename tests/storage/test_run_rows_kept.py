"""What rows of runs share, and what becomes of them."""

import sqlite3
from pathlib import Path

import pytest

from gateway.broker.settings import BrokerSettings
from gateway.mqtt.packets import MQTT_3_1_1, MQTT_5, Publish
from gateway.routing.where.message import Message
from gateway.session.queue_memory import QueueMemory
from gateway.storage.fate_reader import FateReader, Owed
from gateway.storage.migrations import migrate
from tests.support.durable_broker import DurableHarness
from tests.support.queues import messages
from tests.support.run_rows import (
    RUN,
    acknowledge,
    away,
    nothing_is_left,
    numbers,
    payloads,
    publish,
    rows,
)
from tests.support.sqlite_disk import SqliteDisk


def test_several_sessions_share_the_packets_on_disk_and_in_memory() -> None:
    harness = DurableHarness()
    for name in ("one", "two"):
        away(harness, name)
    publish(harness)
    disk, memory = harness.disk, harness.broker.queue_memory
    assert (disk.count("message"), disk.count("delivery")) == (1, 2)
    assert (memory.messages, memory.deliveries) == (RUN, 2 * RUN)
    before = memory.bytes
    harness.crash()
    memory = harness.broker.queue_memory
    assert (memory.bytes, memory.messages) == (before, RUN)
    for name in ("one", "two"):
        client = harness.persistent(name)
        assert payloads(client) == numbers(0, RUN)
        acknowledge(client, *range(1, RUN + 1))
        harness.pass_time(2)
    nothing_is_left(harness)


def test_who_is_there_and_has_not_acknowledged_is_written_with_who_is_away() -> None:
    harness = DurableHarness()
    away(harness)
    here = harness.persistent("here")
    here.subscribe("a/b", 1)
    publish(harness)
    harness.crash()
    for name, dup in (("away", False), ("here", True)):
        client = harness.persistent(name)
        assert payloads(client) == numbers(0, RUN, dup=dup)
        acknowledge(client, *range(1, RUN + 1))
    nothing_is_left(harness)


@pytest.mark.parametrize("connected", [False, True])
@pytest.mark.parametrize("paged", [False, True])
def test_a_session_that_ends_leaves_nothing(
    connected: bool, paged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if paged:
        monkeypatch.setattr("gateway.session.delivery_queue.HEAD_MESSAGES", 5)
    harness = DurableHarness(BrokerSettings(maximum_inflight=7))
    away(harness)
    for first in range(0, 4 * RUN, RUN):
        publish(harness, RUN, first)
    if connected:
        client = harness.persistent("away")
        acknowledge(client, 1, 2)
        harness.pass_time(2)
        client.drop()
    harness.connect("away", MQTT_3_1_1, clean_start=True).drop()
    nothing_is_left(harness)


def test_what_waits_is_paged_by_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.session.delivery_queue.HEAD_MESSAGES", 10)
    monkeypatch.setattr("gateway.storage.restore.HEAD_MESSAGES", 10)
    monkeypatch.setattr("gateway.storage.pager.PAGE_MESSAGES", 5)
    harness = DurableHarness(BrokerSettings(maximum_inflight=12))
    away(harness)
    for first in range(0, 6 * RUN, RUN):
        publish(harness, RUN, first)
    queue = harness.session("away").queue
    assert (len(queue), queue.paged) == (6 * RUN, 5 * RUN)
    harness.crash()
    queue = harness.session("away").queue
    assert (len(queue), queue.paged) == (6 * RUN, 5 * RUN)
    client = harness.persistent("away")
    got: list[tuple[bytes, bool]] = []
    while new := [each for each in client.take() if isinstance(each, Publish)]:
        got += [(each.payload, each.dup) for each in new]
        acknowledge(client, *(each.packet_id for each in new))
    assert got == numbers(0, 6 * RUN)
    nothing_is_left(harness)


def test_a_row_whose_numbers_do_not_agree_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    harness = DurableHarness()
    away(harness)
    publish(harness)
    harness.disk.connection.execute("UPDATE delivery SET messages = messages - 1")
    harness.crash()
    assert not list(messages(harness.session("away").queue))
    assert "delivery to session (1, 20): ValueError: 20 messages of 19" in caplog.text


@pytest.mark.parametrize("window", [8, 3 * RUN])
@pytest.mark.parametrize("first", [1, 2])
def test_a_session_that_is_to_end_with_its_connection_goes_on_without_its_rows(
    window: int, first: int
) -> None:
    harness = DurableHarness(BrokerSettings(maximum_inflight=window))
    for name in ("away", "other"):
        away(harness, name)
    for number in range(0, 3 * RUN, RUN):
        publish(harness, RUN, number)
    client = harness.connect("away", clean_start=False)
    harness.pass_time(2)
    assert rows(harness.disk) == [(RUN, RUN), (2 * RUN, RUN), (3 * RUN, RUN)]  # the other's
    got: list[tuple[bytes, bool]] = []
    while new := [each for each in client.take() if isinstance(each, Publish)]:
        got += [(each.payload, each.dup) for each in new]
        acknowledge(client, *(each.packet_id for each in (*new[first - 1 :], *new[: first - 1])))
    assert got == numbers(0, 3 * RUN)
    client.drop()
    harness.pass_time(2)
    assert len(rows(harness.disk)) == 3
    harness.crash()
    client = harness.persistent("other")
    while new := [each for each in client.take() if isinstance(each, Publish)]:
        acknowledge(client, *(each.packet_id for each in new))
    nothing_is_left(harness)


def test_the_oldest_give_way_one_by_one() -> None:
    settings = BrokerSettings(maximum_queued_messages=RUN, queue_when_full="drop-oldest")
    harness = DurableHarness(settings)
    away(harness)
    publish(harness)
    for number in range(RUN, RUN + 3):
        harness.publish("a/b", b"%d" % number, 1)
    harness.crash()
    client = harness.persistent("away")
    assert payloads(client) == numbers(3, RUN + 3)


@pytest.mark.parametrize("version", [MQTT_3_1_1, MQTT_5])
def test_the_fate_of_a_message_of_a_run(version: int) -> None:
    harness = DurableHarness()
    away(harness)
    publisher = harness.connect("publisher", version)
    publisher.send(*(Publish("a/b", b"%d" % n, 1, packet_id=n + 1) for n in range(RUN)))
    fates = FateReader(harness.disk.connection)

    def owed(payload: bytes) -> Owed | None:
        return fates.owed("away", Message("a/b", payload, 1, received_at=harness.wall))

    assert owed(b"3") == Owed(None, False)
    assert owed(b"x") is None
    client = harness.persistent("away")
    acknowledge(client, 1, 2, 3, 4)
    harness.disk.commit()
    assert owed(b"3") is None
    assert owed(b"4") == Owed(None, False)
    harness.disk.connection.execute("UPDATE message SET payload = x'00'")
    assert owed(b"4") is None


def test_a_database_of_the_version_before_goes_on(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "old.db", isolation_level=None)
    for number, script in migrate.migrations()[:9]:
        connection.executescript(f"{script};PRAGMA user_version = {number}")
    connection.execute("INSERT INTO session VALUES (1, 'away', 1000, NULL, 1)")
    connection.execute(
        "INSERT INTO message (id, topic, payload, qos, retain, received_at)"
        " VALUES (1, 'a/b', x'30', 1, 0, 1)"
    )
    connection.execute(
        "INSERT INTO delivery VALUES (1, 1, 1, 1, 0, 0, 0, NULL, NULL, 100, 1, NULL)"
    )
    migrate.migrate(connection)
    disk = SqliteDisk()
    disk.connection = connection
    _, kept = disk.restore(0.0, 0)
    assert [each.delivery.count for each in kept.sessions[0].deliveries] == [1]


def test_memory_counts_what_is_shared_once() -> None:
    harness = DurableHarness()
    for name in ("one", "two"):
        away(harness, name)
    publish(harness)
    waiting = harness.session("one").queue.next_run
    assert waiting is not None
    memory = QueueMemory()
    run = waiting.run
    run.holders = 0
    for _ in range(2):
        memory.add_run(run)
    once = memory.bytes
    memory.remove_run(run)
    assert (memory.deliveries, memory.messages) == (RUN, RUN)
    assert memory.bytes < once
    memory.remove_run(run)
    assert (memory.bytes, memory.deliveries, memory.messages) == (0, 0, 0)

"""Messages of a run in one row: what is left of it, whatever becomes of them, and after a crash."""

import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.broker.settings import BrokerSettings
from gateway.mqtt.packets import MQTT_3_1_1, MQTT_5, Connect, PubAck, Publish
from gateway.mqtt.properties import Properties
from gateway.routing.where.message import Message
from gateway.session.queue_memory import QueueMemory
from gateway.session.waiting_run import FEW, MOST
from gateway.storage import session_rows
from gateway.storage.fate_reader import FateReader, Owed
from gateway.storage.migrations import migrate
from tests.support.broker_harness import Harness, MemoryClient
from tests.support.counted_rows import everything_is_counted
from tests.support.durable_broker import DurableHarness
from tests.support.queues import messages
from tests.support.sqlite_disk import SqliteDisk

RUN = 20


def away(harness: Harness, name: str = "away", topic_filter: str = "a/#") -> None:
    client = harness.persistent(name)
    client.subscribe(topic_filter, 1)
    client.drop()


def publish(harness: Harness, count: int = RUN, first: int = 0, topic: str = "a/b") -> None:
    publisher = harness.connect("publisher")
    publisher.send(
        *(Publish(topic, b"%d" % n, 1, packet_id=n + 1) for n in range(first, first + count))
    )
    publisher.drop()


def rows(disk: SqliteDisk) -> list[tuple[int, int]]:
    """Return place and number of messages of each row."""
    return disk.connection.execute("SELECT place, messages FROM delivery ORDER BY 1").fetchall()


def payloads(client: MemoryClient) -> list[tuple[bytes, bool]]:
    return [(each.payload, each.dup) for each in client.take() if isinstance(each, Publish)]


def numbers(first: int, end: int, *, dup: bool = False) -> list[tuple[bytes, bool]]:
    return [(b"%d" % number, dup) for number in range(first, end)]


def acknowledge(client: MemoryClient, *packet_ids: int) -> None:
    client.send(*(PubAck(packet_id) for packet_id in packet_ids))


def nothing_is_left(harness: DurableHarness) -> None:
    memory, disk = harness.broker.queue_memory, harness.disk
    harness.pass_time(2)
    everything_is_counted(harness)
    assert (memory.bytes, memory.deliveries, memory.disk_bytes, memory.messages) == (0, 0, 0, 0)
    assert (disk.count("delivery"), disk.count("message")) == (0, 0)


@pytest.mark.parametrize("crash", [False, True])
@pytest.mark.parametrize("version", [MQTT_3_1_1, MQTT_5])
def test_a_run_is_one_row_until_all_is_acknowledged(version: int, crash: bool) -> None:
    harness = DurableHarness()
    away(harness)
    publish(harness)
    assert rows(harness.disk) == [(RUN, RUN)]
    memory = harness.broker.queue_memory
    before = memory.bytes, memory.deliveries, memory.disk_bytes
    if crash:
        harness.crash()
        memory = harness.broker.queue_memory
        assert (memory.bytes, memory.deliveries, memory.disk_bytes) == before
    client = harness.persistent("away", version)
    assert payloads(client) == numbers(0, RUN)
    acknowledge(client, *range(1, RUN + 1))
    nothing_is_left(harness)


def test_rows_of_which_nothing_is_left_are_deleted_together() -> None:
    harness = DurableHarness()
    away(harness)
    for first in range(0, 5 * RUN, RUN):
        publish(harness, RUN, first)
    client = harness.persistent("away")
    harness.commits = False
    acknowledge(client, *range(1, 2 * RUN + 1))
    harness.disk.rows.clear()
    for gather in harness.disk.before_batch:
        gather()
    assert harness.disk.rows == [(session_rows.DONE, (1, 1, 2 * RUN))]
    harness.commits = True
    harness.commit()
    acknowledge(client, *range(2 * RUN + 1, 5 * RUN + 1))
    client.take()
    nothing_is_left(harness)


def test_few_messages_wait_by_themselves() -> None:
    harness = DurableHarness()
    away(harness)
    publish(harness, FEW - 1)
    assert rows(harness.disk) == [(n, 1) for n in range(1, FEW)]


def test_a_long_run_is_cut() -> None:
    harness = DurableHarness()
    away(harness)
    publish(harness, MOST + 10)
    assert rows(harness.disk) == [(MOST, MOST), (MOST + 10, 10)]


def test_what_is_acknowledged_before_it_is_written_never_is() -> None:
    harness = DurableHarness()
    away(harness)
    harness.commits = False
    publish(harness)
    client = harness.open()
    expiry = Properties(session_expiry_interval=3600)
    client.send(Connect("away", clean_start=False, properties=expiry))
    acknowledge(client, *range(1, RUN + 1))
    harness.commits = True
    harness.commit()
    assert payloads(client) == numbers(0, RUN)
    assert harness.disk.count("message") == harness.disk.count("delivery") == 0
    assert harness.disk.elided_rows == 2
    nothing_is_left(harness)


def test_a_part_that_is_acknowledged_is_written_in_a_second() -> None:
    harness = DurableHarness()
    away(harness)
    publish(harness)
    client = harness.persistent("away")
    acknowledge(client, *range(1, 8))
    harness.pass_time(2)
    assert rows(harness.disk) == [(RUN, RUN - 7)]
    harness.crash()
    client = harness.persistent("away")
    assert payloads(client) == numbers(7, RUN, dup=True)  # it was connected
    acknowledge(client, *range(1, RUN - 6))
    nothing_is_left(harness)


def test_the_window_is_filled_with_parts_of_runs() -> None:
    harness = DurableHarness(BrokerSettings(maximum_inflight=7))
    away(harness)
    for first in range(0, 5 * RUN, RUN):
        publish(harness, RUN, first)
    assert len(rows(harness.disk)) == 5
    client = harness.persistent("away")
    got: list[tuple[bytes, bool]] = []
    while new := [each for each in client.take() if isinstance(each, Publish)]:
        assert len(new) <= 7
        got += [(each.payload, each.dup) for each in new]
        acknowledge(client, *(each.packet_id for each in new))
        assert harness.session("away").inflight.alone == 0
    assert got == numbers(0, 5 * RUN)
    nothing_is_left(harness)


def test_packet_identifiers_come_round_within_a_run() -> None:
    harness = DurableHarness()
    away(harness)
    publish(harness)
    harness.session("away").inflight._last = 65_525
    client = harness.persistent("away")
    sent = [each.packet_id for each in client.take() if isinstance(each, Publish)]
    assert sent == [*range(65_526, 65_536), *range(1, 11)]
    acknowledge(client, *sent)
    nothing_is_left(harness)


def test_an_identifier_that_is_taken_makes_single_messages() -> None:
    harness = DurableHarness()
    away(harness)
    harness.publish("a/b", b"first", 1)
    publish(harness)
    harness.session("away").inflight._last = 65_535
    client = harness.persistent("away")
    inflight = harness.session("away").inflight
    assert len(payloads(client)) == 1 + RUN
    acknowledge(client, *range(2, 2 + RUN))
    assert inflight.alone == 1
    publish(harness, RUN, RUN)
    client.drop()
    publish(harness, RUN, 2 * RUN)
    client = harness.persistent("away")
    inflight._last = 65_535  # 1 is taken
    harness.session("away").pump(harness.now)
    acknowledge(client, *(each.packet_id for each in client.take() if isinstance(each, Publish)))
    acknowledge(client, *(each.packet_id for each in client.take() if isinstance(each, Publish)))
    nothing_is_left(harness)


def test_single_messages_stand_between_runs_in_the_order_in_which_they_were_sent() -> None:
    harness = DurableHarness()
    away(harness)
    for first in (0, RUN + 1, 2 * RUN + 2):
        publish(harness, RUN, first)
        harness.publish("a/b", b"%d" % (first + RUN), 1)
    inflight = harness.session("away").inflight
    client = harness.persistent("away")
    last = 3 * RUN + 3
    assert payloads(client) == numbers(0, last)
    assert (inflight.in_runs, inflight.alone) == (3 * RUN, 3)
    acknowledge(client, *range(1, RUN + 8))  # into the second run
    assert (inflight.in_runs, inflight.alone) == (2 * RUN - 6, 2)
    acknowledge(client, last, RUN + 9)  # the second makes single messages
    assert (inflight.in_runs, inflight.alone) == (0, 2 * RUN - 6)
    client.drop()
    client = harness.persistent("away")
    left = [n for n in range(RUN + 7, last - 1) if n != RUN + 8]
    assert payloads(client) == [(b"%d" % n, True) for n in left]
    acknowledge(client, *(n + 1 for n in left))
    nothing_is_left(harness)


def test_a_single_message_gets_no_identifier_of_a_run() -> None:
    harness = DurableHarness()
    away(harness)
    publish(harness)
    client = harness.persistent("away")
    inflight = harness.session("away").inflight
    inflight._last = 65_535
    client.take()
    harness.publish("a/b", b"x", 1)
    assert [each.packet_id for each in client.take() if isinstance(each, Publish)] == [RUN + 1]
    assert inflight.alone == RUN + 1
    acknowledge(client, *range(1, RUN + 2))
    nothing_is_left(harness)


@pytest.mark.parametrize("crash", [False, True])
def test_out_of_order_a_row_says_which_are_gone(crash: bool) -> None:
    harness = DurableHarness()
    away(harness)
    publish(harness)
    client = harness.persistent("away")
    acknowledge(client, 1, 3, 4, 7, RUN)
    harness.pass_time(2)
    assert rows(harness.disk) == [(RUN, RUN - 5)]
    left = [n for n in range(RUN) if n + 1 not in (1, 3, 4, 7, RUN)]
    if crash:
        harness.crash()
    else:
        client.drop()  # which writes packet identifiers, each beside its message
        assert [count for _, count in rows(harness.disk)] == [1] * len(left)
        harness.crash()
    client = harness.persistent("away")
    again = [each for each in client.take() if isinstance(each, Publish)]
    assert [(each.payload, each.dup) for each in again] == [(b"%d" % n, True) for n in left]
    if not crash:
        assert [each.packet_id for each in again] == [n + 1 for n in left]
    acknowledge(client, *(each.packet_id for each in again))
    nothing_is_left(harness)


@pytest.mark.parametrize("window", [8, RUN])
def test_who_goes_in_the_middle_of_a_run_gets_the_rest_later(window: int) -> None:
    harness = DurableHarness(BrokerSettings(maximum_inflight=window))
    away(harness)
    publish(harness)
    client = harness.persistent("away")
    acknowledge(client, 1, 2)
    client.take()
    client.drop()
    sent = min(RUN, window + 2)  # two more when two were acknowledged
    held = [(RUN, RUN - sent)] if sent < RUN else []
    assert rows(harness.disk) == [*((n, 1) for n in range(3, sent + 1)), *held]
    harness.crash()
    client = harness.persistent("away")
    got: list[tuple[bytes, bool]] = []
    while new := [each for each in client.take() if isinstance(each, Publish)]:
        got += [(each.payload, each.dup) for each in new]
        acknowledge(client, *(each.packet_id for each in new))
    assert got == numbers(2, sent, dup=True) + numbers(sent, RUN)
    nothing_is_left(harness)


def test_a_crash_while_connected_sends_a_window_again() -> None:
    harness = DurableHarness(BrokerSettings(maximum_inflight=30))
    away(harness)
    for first in range(0, 3 * RUN, RUN):
        publish(harness, RUN, first)
    harness.persistent("away")
    harness.crash()
    client = harness.persistent("away")
    got: list[tuple[bytes, bool]] = []
    while new := [each for each in client.take() if isinstance(each, Publish)]:
        got += [(each.payload, each.dup) for each in new]
        acknowledge(client, *(each.packet_id for each in new))
    assert got == numbers(0, 30, dup=True) + numbers(30, 3 * RUN)
    nothing_is_left(harness)


@pytest.mark.parametrize("run", [False, True])
def test_two_crashes_do_not_take_dup_away(run: bool) -> None:
    harness = DurableHarness(BrokerSettings(maximum_inflight=3))
    away(harness)
    for first in range(0, 8, 8 if run else 1):
        publish(harness, 8 if run else 1, first)
    harness.persistent("away")
    harness.crash()
    harness.crash()
    client = harness.persistent("away")
    assert payloads(client) == numbers(0, 3, dup=True)


SPECIAL = {
    "topic aliases": Properties(topic_alias_maximum=3),
    "a small Maximum Packet Size": Properties(maximum_packet_size=100),
    "a small Receive Maximum": Properties(receive_maximum=3),
}


@pytest.mark.parametrize("properties", SPECIAL.values(), ids=SPECIAL)
def test_for_whom_runs_are_nothing(properties: Properties) -> None:
    harness = DurableHarness()
    away(harness)
    publish(harness)
    harness.publish("a/b", b"%d" % RUN, 1)
    publish(harness, RUN, RUN + 1)
    more = Properties(
        session_expiry_interval=1000,
        topic_alias_maximum=properties.topic_alias_maximum,
        maximum_packet_size=properties.maximum_packet_size,
        receive_maximum=properties.receive_maximum,
    )
    client = harness.connect("away", clean_start=False, properties=more)
    got: list[bytes] = []
    while new := [each for each in client.take() if isinstance(each, Publish)]:
        got += [each.payload for each in new]
        acknowledge(client, *(each.packet_id for each in new))
    assert got == [b"%d" % n for n in range(2 * RUN + 1)]
    nothing_is_left(harness)


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


class Life:
    """A session that comes, goes and crashes while runs come for it; all is acknowledged once.

    `hold` lets turns pass without a commit: a crash then forgets what came since, and a message
    whose acknowledgement it forgets may come again.
    """

    def __init__(self, window: int) -> None:
        self.harness = DurableHarness(BrokerSettings(maximum_inflight=window))
        away(self.harness)
        self.client: MemoryClient | None = None
        self.published = self.safe = 0
        self.first_time: list[int] = []
        self.sent: set[int] = set()
        self.finished: set[int] = set()
        self.forgettable: set[int] = set()
        self.owed: list[tuple[int, int]] = []

    def publish(self, count: int) -> None:
        publish(self.harness, count, self.published)
        self.published += count
        self.look()

    def hold(self) -> None:
        self.harness.commits = False

    def commit(self) -> None:
        self.harness.commits = True
        self.harness.settle()
        self.look()

    def come(self) -> None:
        if self.client is None:
            self.commit()
            self.client = self.harness.persistent("away")
            self.look()

    def go(self) -> None:
        if self.client is not None:
            self.client.drop()
        self.client, self.owed = None, []
        self.look()

    def crash(self) -> None:
        self.harness.crash()
        self.client, self.owed = None, []
        self.finished -= self.forgettable
        if self.forgettable or self.published > self.safe:
            self.sent.clear()
        self.published = self.safe
        self.first_time = [number for number in self.first_time if number < self.safe]
        self.commit()

    def acknowledge(self, count: int, skip: int) -> None:
        if self.client is not None:
            answers = self.owed[skip : skip + count]
            del self.owed[skip : skip + count]
            acknowledge(self.client, *(packet_id for _, packet_id in answers))
            self.finished |= {number for number, _ in answers}
            self.forgettable |= {number for number, _ in answers}
            self.look()

    def look(self) -> None:
        if self.harness.commits:
            everything_is_counted(self.harness)
            self.safe = self.published
            self.forgettable.clear()
        for packet in [] if self.client is None else self.client.take():
            assert isinstance(packet, Publish)
            number = int(packet.payload)
            assert number not in self.finished
            assert packet.dup or number not in self.sent
            self.sent.add(number)
            if number not in self.first_time:
                self.first_time.append(number)
            self.owed.append((number, packet.packet_id))

    def end(self) -> None:
        self.commit()
        self.come()
        while self.owed:
            self.acknowledge(len(self.owed), 0)
        assert self.first_time == [*range(self.published)]
        assert self.finished == {*range(self.published)}
        nothing_is_left(self.harness)


LIVES = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.integers(1, 12)),
        st.tuples(st.just("acknowledge"), st.integers(1, 9), st.sampled_from([0, 0, 0, 1, 3])),
        st.tuples(st.sampled_from(["come", "come", "go", "crash", "hold", "commit"])),
    ),
    max_size=25,
)


@given(steps=LIVES, window=st.integers(1, 15), head=st.integers(1, 20))
def test_nothing_is_lost_or_comes_twice_without_saying_so(
    steps: list[tuple[str, int]], window: int, head: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gateway.session.delivery_queue.HEAD_MESSAGES", head)
        patch.setattr("gateway.storage.restore.HEAD_MESSAGES", head)
        patch.setattr("gateway.storage.pager.PAGE_MESSAGES", max(1, head // 2))
        life = Life(window)
        for name, *numbers in steps:
            getattr(life, name)(*numbers)
        life.end()

"""The row of a batch: what is left of it, whatever becomes of its messages, and after a crash."""

from dataclasses import replace

import pytest

from gateway.broker.publishing.publish import MAXIMUM_NUMBERED
from gateway.mqtt.packets import MQTT_3_1_1, MQTT_5
from gateway.mqtt.properties import Properties
from gateway.settings.broker import BrokerSettings
from gateway.storage.sessions import session_rows
from tests.support.broker.durable_broker import DurableHarness, away
from tests.support.broker.publishing import published
from tests.support.disk.batch_rows import (
    COUNT,
    acknowledge,
    drain,
    nothing_is_left,
    numbers,
    publish,
    rows,
    sent,
)
from tests.support.table import table

END = COUNT + 1


def started(window: int = 1_000, **settings: object) -> DurableHarness:
    """Return a broker that a client is away from."""
    harness = DurableHarness(BrokerSettings(maximum_inflight=window, **settings))  # type: ignore[arg-type]  # by name
    away(harness, "a/#", "away", 1)
    return harness


def remembered(harness: DurableHarness) -> tuple[int, int, int]:
    memory = harness.broker.queue_memory
    return memory.bytes, memory.deliveries, memory.disk_bytes


@pytest.mark.uncovered
@table("crash", [False, True])
@table("version", [MQTT_3_1_1, MQTT_5])
@table("count", [1, 2, 100])
def test_a_batch_is_one_row_until_all_is_acknowledged(
    version: int, crash: bool, count: int
) -> None:
    harness = started()
    publish(harness, count)
    assert rows(harness.disk) == [(count, count)]
    before = remembered(harness)
    if crash:
        harness.crash()
        assert remembered(harness)[1:] == before[1:]
        assert count == 1 or remembered(harness) == before  # a single one is made anew
    client = harness.persistent("away", version)
    assert sent(client) == numbers(1, count + 1)
    acknowledge(client, *range(1, count + 1))
    nothing_is_left(harness)


def test_rows_of_which_nothing_is_left_are_deleted_together() -> None:
    harness = started()
    for first in range(1, 5 * COUNT, COUNT):
        publish(harness, COUNT, first)
    client = harness.persistent("away")
    harness.commits = False
    acknowledge(client, *range(1, 2 * COUNT + 1))
    harness.disk.rows.clear()
    for gather in harness.disk.before_batch:
        gather()
    assert harness.disk.rows == [(session_rows.DONE, (1, 1, 2 * COUNT))]
    harness.commits = True
    harness.commit()
    acknowledge(client, *range(2 * COUNT + 1, 5 * COUNT + 1))
    nothing_is_left(harness)


def test_a_large_batch_becomes_several_rows() -> None:
    harness = started()
    publish(harness, MAXIMUM_NUMBERED + 10)
    most = MAXIMUM_NUMBERED
    assert rows(harness.disk) == [(most, most), (most + 10, 10)]


@pytest.mark.uncovered
@pytest.mark.parametrize("part", [7, 31, 63, 64, 200])  # more than a number of C has bits
def test_a_part_that_is_acknowledged_is_written_in_a_second(part: int) -> None:
    harness = started()
    publish(harness, MAXIMUM_NUMBERED)
    client = harness.persistent("away")
    acknowledge(client, *range(1, part + 1))
    harness.pass_time(2)
    assert rows(harness.disk) == [(MAXIMUM_NUMBERED, MAXIMUM_NUMBERED - part)]
    harness.crash()
    client = harness.persistent("away")
    assert drain(client) == numbers(part + 1, MAXIMUM_NUMBERED + 1, dup=True)  # it was connected
    nothing_is_left(harness)


def test_several_sessions_share_the_packets_on_disk_and_in_memory() -> None:
    harness = started()
    away(harness, "a/#", "other", 1)
    publish(harness)
    disk, memory = harness.disk, harness.broker.queue_memory
    assert (disk.count("message"), disk.count("delivery")) == (1, 2)
    assert (memory.messages, memory.deliveries) == (COUNT, 2 * COUNT)
    before = memory.bytes
    harness.crash()
    memory = harness.broker.queue_memory
    assert (memory.bytes, memory.messages) == (before, COUNT)
    for name in ("away", "other"):
        assert drain(harness.persistent(name)) == numbers(1, END)
        harness.pass_time(2)
    nothing_is_left(harness)


@pytest.mark.parametrize("connected", [False, True])
@pytest.mark.parametrize("paged", [False, True])
def test_a_session_that_ends_leaves_nothing(
    connected: bool, paged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if paged:
        monkeypatch.setattr("gateway.session.queue.delivery_queue.HEAD_MESSAGES", 5)
    harness = started(window=7)
    for first in range(1, 4 * COUNT, COUNT):
        publish(harness, COUNT, first)
    if connected:
        client = harness.persistent("away")
        acknowledge(client, 1, 2)
        harness.pass_time(2)
        client.drop()
    harness.connect("away", MQTT_3_1_1, clean_start=True).drop()
    nothing_is_left(harness)


@pytest.mark.parametrize("window", [8, 3 * COUNT])
@pytest.mark.parametrize("first", [1, 2])
def test_a_session_that_is_to_end_with_its_connection_goes_on_without_its_rows(
    window: int, first: int
) -> None:
    harness = started(window)
    away(harness, "a/#", "other", 1)
    for number in range(1, 3 * COUNT, COUNT):
        publish(harness, COUNT, number)
    client = harness.connect("away", clean_start=False)
    harness.pass_time(2)
    of_the_other = [(COUNT, COUNT), (2 * COUNT, COUNT), (3 * COUNT, COUNT)]
    assert rows(harness.disk) == of_the_other
    got: list[tuple[int, bool]] = []
    while new := published(client):
        got += [(int(each.payload), each.dup) for each in new]
        acknowledge(client, *(each.packet_id for each in (*new[first - 1 :], *new[: first - 1])))
    assert got == numbers(1, 3 * COUNT + 1)
    client.drop()
    harness.pass_time(2)
    assert rows(harness.disk) == of_the_other
    harness.crash()
    drain(harness.persistent("other"))
    nothing_is_left(harness)


@pytest.mark.parametrize("crash", [False, True])
def test_out_of_order_a_row_says_which_are_gone(crash: bool) -> None:
    harness = started()
    publish(harness)
    client = harness.persistent("away")
    gone = (1, 3, 4, 7, COUNT)
    acknowledge(client, *gone)
    harness.pass_time(2)
    assert rows(harness.disk) == [(COUNT, COUNT - len(gone))]
    if not crash:
        client.drop()  # which writes packet identifiers, those of one row by its last
        assert rows(harness.disk) == [(COUNT, COUNT - len(gone))]
    harness.crash()
    client = harness.persistent("away")
    again = published(client)
    left = [n for n in range(1, END) if n not in gone]
    assert [(int(each.payload), each.dup) for each in again] == [(n, True) for n in left]
    if not crash:
        assert [each.packet_id for each in again] == left
    acknowledge(client, *(each.packet_id for each in again))
    nothing_is_left(harness)


def test_pieces_that_came_back_whole_are_not_written_again() -> None:
    harness = started()
    publish(harness)
    client = harness.persistent("away")
    acknowledge(client, 5)
    client.drop()
    harness.crash()
    deliveries = "SELECT sequence, size FROM delivery"
    before = harness.disk.connection.execute(deliveries).fetchall()
    harness.persistent("away").drop()
    assert harness.disk.connection.execute(deliveries).fetchall() == before


LIMITS = {
    "topic aliases": Properties(topic_alias_maximum=3),
    "a small Maximum Packet Size": Properties(maximum_packet_size=100),
    "a small Receive Maximum": Properties(receive_maximum=3),
}


@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS)
def test_what_waited_for_a_client_with_limits_leaves_nothing(limits: Properties) -> None:
    harness = started()
    publish(harness)
    publish(harness, 1, END)
    publish(harness, COUNT, END + 1)
    stays = replace(limits, session_expiry_interval=1_000)
    client = harness.connect("away", clean_start=False, properties=stays)
    assert drain(client) == numbers(1, 2 * COUNT + 2)
    nothing_is_left(harness)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("messages = messages - 1", "20 messages of 19"),
        ("messages = 0, gone = x'FFFFFF'", "-4 messages of 0"),
        ("messages = 0, gone = x'FFFF0F'", "0 messages of 0"),
    ],
)
def test_a_row_whose_numbers_do_not_agree_is_left_out(
    caplog: pytest.LogCaptureFixture, damage: str, said: str
) -> None:
    harness = started()
    publish(harness)
    harness.disk.connection.execute(f"UPDATE delivery SET {damage}")
    harness.crash()
    assert not list(harness.session("away").queue)
    assert f"delivery to session (1, 20): ValueError: {said}" in caplog.text

"""Messages of a run in one row: what is left of it, whatever becomes of them, and after a crash."""

import pytest

from gateway.mqtt.packets import MQTT_3_1_1, MQTT_5, Connect, Publish
from gateway.mqtt.properties import Properties
from gateway.session.waiting_run import FEW, MOST
from gateway.storage import session_rows
from tests.support.durable_broker import DurableHarness
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

"""Live messages go up in the turn in which they come, and are written only if the fleet is late."""

import asyncio

import pytest

import gateway.uplink.lanes as lanes_module
from gateway.mqtt.output import Barrier
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.disk.storage import Store, outbox_row, until
from tests.support.fleet.fleet_broker import FleetBroker, numbers_of
from tests.support.fleet.uplinks import connected, running, uplink_settings

HOUR = 3_600.0
SHORT = 0.05


def _add(store: Store, first: int, last: int, wait: float, barrier: Barrier | None = None) -> None:
    for seq in range(first, last + 1):
        store.outbox.add(outbox_row(seq), 0.0, wait, barrier)
    store.writer.hand_over()


async def _idle(store: Store) -> int:
    """Return the last batch once the outbox is empty and nothing is to be written."""
    await until(lambda: store.outbox.rows == 0)
    await store.settle()
    return store.writer.committed


async def test_what_is_acknowledged_in_time_is_never_written(
    store: Store, fleet_broker: FleetBroker
) -> None:
    async with running(store, uplink_settings(fleet_broker.port)) as uplink:
        await connected(uplink)
        barrier = Barrier()
        before = store.writer.batch
        _add(store, 1, 250, HOUR, barrier)  # more than the window
        assert barrier.outstanding == 250
        await until(lambda: store.outbox.rows == 0)
        assert barrier.outstanding == 0
        assert store.writer.batch == before
    assert numbers_of(fleet_broker) == list(range(1, 251))
    assert store.counters.count("tidegate/outbox/unwritten") == 250


async def test_what_the_fleet_keeps_waiting_is_written_and_the_next_at_once(
    store: Store, fleet_broker: FleetBroker
) -> None:
    fleet_broker.puback = lambda _publish: None
    async with running(store, uplink_settings(fleet_broker.port)) as uplink:
        await connected(uplink)
        _add(store, 1, 2, SHORT, Barrier())
        await until(lambda: store.outbox.writes.committed_id == 2)
        barrier = Barrier()
        _add(store, 3, 3, SHORT, barrier)
        await until(lambda: store.outbox.writes.committed_id == 3)
        assert barrier.outstanding == 0  # nobody waits for a fleet that is late
        await until(lambda: len(fleet_broker.data) == 3)
        for publish in fleet_broker.data:
            fleet_broker.acknowledge(publish, ReasonCode.SUCCESS)
        await _idle(store)
        fleet_broker.puback = lambda _publish: ReasonCode.SUCCESS
        _add(store, 4, 4, HOUR, Barrier())
        await until(lambda: store.outbox.rows == 0)
    assert numbers_of(fleet_broker) == [1, 2, 3, 4]


async def test_a_batch_of_others_takes_what_is_deferred_along(
    store: Store, fleet_broker: FleetBroker
) -> None:
    fleet_broker.puback = lambda _publish: None
    async with running(store, uplink_settings(fleet_broker.port)) as uplink:
        await connected(uplink)
        _add(store, 1, 2, HOUR)
        _add(store, 3, 3, 0.0)  # which nobody may put off
        await store.settle()
        rows = await store.outbox.fetch(0, 10)
        assert [row.seq for row in rows] == [1, 2, 3]


async def test_a_lost_connection_leaves_nothing_unwritten(
    store: Store, fleet_broker: FleetBroker
) -> None:
    async with running(store, uplink_settings(fleet_broker.port, window=2)) as uplink:
        await connected(uplink)
        await until(lambda: not store.counters.count("tidegate/uplink/inflight"))
        fleet_broker.puback = lambda _publish: None
        _add(store, 1, 5, HOUR)  # two sent, three in memory
        await until(lambda: len(fleet_broker.data) == 2)
        fleet_broker.puback = lambda _publish: ReasonCode.SUCCESS
        fleet_broker.drop()
        await until(lambda: store.outbox.writes.committed_id == 5)
        await _idle(store)
    assert sorted(set(numbers_of(fleet_broker))) == [1, 2, 3, 4, 5]


async def test_what_memory_has_no_room_for_follows_in_order(
    store: Store, fleet_broker: FleetBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanes_module, "MAX_FRESH_ROWS", 3)
    async with running(store, uplink_settings(fleet_broker.port, window=2)) as uplink:
        await connected(uplink)
        for first in range(1, 200, 10):
            _add(store, first, first + 9, HOUR)
            await asyncio.sleep(0)
        await until(lambda: store.outbox.rows == 0)
        _add(store, 201, 202, HOUR)
        await _idle(store)
    assert numbers_of(fleet_broker) == list(range(1, 203))


async def test_what_is_given_up_unwritten_is_answered_after_a_commit(
    store: Store, fleet_broker: FleetBroker
) -> None:
    fleet_broker.puback = lambda _publish: ReasonCode.TOPIC_NAME_INVALID
    async with running(store, uplink_settings(fleet_broker.port)) as uplink:
        await connected(uplink)
        barrier, batch = Barrier(), store.writer.batch
        _add(store, 1, 1, HOUR, barrier)
        await until(lambda: store.rejected.rows == 1)
        await until(lambda: store.writer.committed >= batch)
        assert barrier.outstanding == 1
    assert store.counters.count("tidegate/outbox/unwritten") == 0


async def test_what_an_answer_waits_for_the_disk_with_goes_up_behind_its_commit(
    store: Store, fleet_broker: FleetBroker
) -> None:
    """A packet identifier or a frame's number; otherwise a crash would make two messages of it."""
    fleet_broker.puback = lambda _publish: None
    async with running(store, uplink_settings(fleet_broker.port)) as uplink:
        await connected(uplink)
        store.outbox.add(outbox_row(1), 0.0, 0.0, Barrier())  # as long as a PUBACK may wait: not
        await until(lambda: numbers_of(fleet_broker) == [1])
        assert store.outbox.writes.committed_id == 0
        store.outbox.add(outbox_row(2, qos=0), 0.0)
        store.outbox.add(outbox_row(3), None)  # of the class memory
        await until(lambda: numbers_of(fleet_broker) == [1, 2, 3])
        store.outbox.add(outbox_row(4, qos=2), 0.0)
        store.outbox.add(outbox_row(5), 0.0, HOUR, Barrier())
        uplink.wake()
        await asyncio.sleep(SHORT)
        assert (numbers_of(fleet_broker), store.outbox.writes.committed_id) == ([1, 2, 3], 0)
        store.writer.hand_over()
        await until(lambda: numbers_of(fleet_broker) == [1, 2, 3, 4, 5])
        for publish in fleet_broker.data:
            fleet_broker.acknowledge(publish, ReasonCode.SUCCESS)
        await _idle(store)

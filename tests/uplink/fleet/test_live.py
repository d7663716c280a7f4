"""Live messages go up in the turn in which they come, and are written only if the fleet is late."""

import asyncio
import os
import signal
from functools import partial
from pathlib import Path
from random import SystemRandom

import pytest

import gateway.uplink.lanes as lanes_module
from gateway.mqtt.output import Barrier
from gateway.mqtt.packets import PubAck, Publish
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.fleet_broker import FleetBroker, numbers_of
from tests.support.gateway_process import GatewayProcess
from tests.support.raw_client import RawClient
from tests.support.slow_link import SlowLink
from tests.support.storage import Store, outbox_row, until
from tests.support.uplinks import connected, running, uplink_settings

LONG = int(os.environ.get("TIDEGATE_CRASH_ROUNDS", "0"))
ROUNDS = LONG or 2
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
        await until(lambda: store.outbox.committed_id == 2)
        barrier = Barrier()
        _add(store, 3, 3, SHORT, barrier)
        await until(lambda: store.outbox.committed_id == 3)
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
        await until(lambda: store.outbox.committed_id == 5)
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


CONFIG = """\
[gateway]
id = "barn"
[uplink]
url = "mqtt://127.0.0.1:{port}"
[[uplink.rule]]
topic = "sensors/#"
[[listener]]
host = "127.0.0.1"
"""


class _Publisher:
    """Publishes numbered payloads at QoS 1, and knows which were acknowledged."""

    def __init__(self) -> None:
        self.number = 0
        self.acknowledged: set[bytes] = set()

    async def publish(self, port: int, count: int) -> None:
        """Publish until all are acknowledged, or until the gateway is gone."""
        waiting: dict[int, bytes] = {}
        try:
            client = await RawClient.open(port)
            await client.say_connect("publisher")
            for _ in range(count):
                self.number += 1
                payload = b"%d" % self.number
                waiting[self.number] = payload
                await client.send(Publish("sensors/n1", payload, 1, packet_id=self.number))
                await asyncio.sleep(0.002)
            while waiting:
                answer = await client.receive()
                assert isinstance(answer, PubAck)
                assert answer.reason_code == ReasonCode.SUCCESS
                self.acknowledged.add(waiting.pop(answer.packet_id))
            await client.close()
        except (OSError, EOFError):
            return


@pytest.mark.parametrize("round_trip", [0.001, 0.05, 0.5])
async def test_nothing_acknowledged_is_lost_when_gateway_and_link_end_at_any_time(
    tmp_path: Path, fleet_broker: FleetBroker, round_trip: float
) -> None:
    link = SlowLink(fleet_broker.port, round_trip)
    await link.start()
    gateway = GatewayProcess(tmp_path, CONFIG.format(port=link.port))
    publisher, random = _Publisher(), SystemRandom()
    try:
        for each in range(2 * ROUNDS):
            online = _online(fleet_broker)
            if gateway.process is None:
                await asyncio.to_thread(gateway.start)
                await until(partial(_more_online, fleet_broker, online))
            publishing = asyncio.create_task(publisher.publish(gateway.port, 100))
            await asyncio.sleep(random.uniform(0.02, 0.3 + round_trip))
            if each % 2:
                link.cut()
                await publishing
            else:
                await asyncio.to_thread(gateway.kill)
                await publishing
        await until(lambda: publisher.acknowledged <= {each.payload for each in fleet_broker.data})
        await asyncio.to_thread(gateway.stop, signal.SIGTERM)
    finally:
        await asyncio.to_thread(gateway.kill)
        await link.stop()
    named: dict[str, bytes] = {}
    for publish in fleet_broker.data:
        seq = dict(publish.properties.user_properties)["seq"]
        assert named.setdefault(seq, publish.payload) == publish.payload  # never used twice
    assert len(publisher.acknowledged) >= 100


def _more_online(broker: FleetBroker, than: int) -> bool:
    return _online(broker) > than


def _online(broker: FleetBroker) -> int:
    return sum(b'"online"' in publish.payload for publish in broker.publishes)

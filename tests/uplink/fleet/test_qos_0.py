"""Rules with `qos = 0`: no PUBACK comes, and what has not left stays in the outbox."""

import asyncio

import pytest

from gateway.settings.uplink import RuleSettings
from tests.support.disk.storage import Store, until
from tests.support.fleet.fleet_broker import FleetBroker, numbers_of
from tests.support.fleet.uplinks import add_rows, connected, running, uplink_settings
from tests.support.ports import free_port

QOS_0 = (RuleSettings("#", stream="main", qos=0),)
CONNACK = b"\x20\x03\x00\x00\x00"


async def test_it_goes_up_without_an_answer_and_waits_while_the_link_is_down(
    store: Store, fleet_broker: FleetBroker
) -> None:
    add_rows(store, 1, 300)
    async with running(store, uplink_settings(fleet_broker.port, targets=QOS_0)) as uplink:
        await until(lambda: store.outbox.rows == 0)
        await until(lambda: numbers_of(fleet_broker) == list(range(1, 301)))
        assert {publish.qos for publish in fleet_broker.data} == {0}
        await fleet_broker.stop()
        await until(lambda: uplink.state == "disconnected")
        add_rows(store, 301, 310)
        await store.settle()
        assert store.outbox.rows == 10
        await fleet_broker.start()
        await until(lambda: store.outbox.rows == 0)
        await until(lambda: numbers_of(fleet_broker) == list(range(1, 311)))


@pytest.mark.uncovered
async def test_a_broker_that_reads_nothing_fills_no_memory(store: Store) -> None:
    port, reading = free_port(), asyncio.Event()
    received = bytearray()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1_000)
        writer.write(CONNACK)
        await reading.wait()
        while data := await reader.read(65_536):
            received.extend(data)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", port, limit=65_536)
    async with running(store, uplink_settings(port, targets=QOS_0)) as uplink:
        await connected(uplink)
        add_rows(store, 1, 1_000, payload=bytes(50_000))
        await store.settle()
        await until(lambda: store.outbox.rows < 1_000)  # the kernel takes the first ones
        await asyncio.sleep(0.5)
        left = store.outbox.rows
        assert left > 100
        assert int(store.counters.count("tidegate/uplink/inflight")) <= 100
        reading.set()
        await until(lambda: store.outbox.rows == 0)
        await until(lambda: len(received) > 50_000_000)
    server.close()

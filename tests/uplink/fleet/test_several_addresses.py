"""A fleet with several addresses: their order, the way back, and a session for each."""

from typing import Any

import pytest

import gateway.uplink.uplink as uplink_module
from gateway.settings.uplink import ReconnectSettings, UplinkSettings
from tests.support.disk.storage import Store, until
from tests.support.fleet.fleet_broker import FleetBroker, numbers_of
from tests.support.fleet.uplinks import add_rows, connected, running, uplink_settings
from tests.support.ports import free_port

QUICK = ReconnectSettings(0.1, 0.2)


def _settings(*ports: int, **keys: Any) -> UplinkSettings:
    urls = tuple(f"mqtt://127.0.0.1:{port}" for port in ports)
    return uplink_settings(urls=urls, reconnect=QUICK, **keys)


async def test_the_first_that_is_up_is_taken_without_a_wait(
    store: Store, fleet_broker: FleetBroker
) -> None:
    dead = [free_port() for _ in range(3)]
    slow = ReconnectSettings(30.0, 30.0)  # it would be seen
    settings = uplink_settings(
        urls=tuple(f"mqtt://127.0.0.1:{port}" for port in (*dead, fleet_broker.port)),
        reconnect=slow,
    )
    add_rows(store, 1, 5)
    async with running(store, settings) as uplink:
        await until(lambda: store.outbox.rows == 0)
        assert uplink.destination.name == f"mqtt://127.0.0.1:{fleet_broker.port}"


async def test_a_list_of_dead_addresses_is_tried_again_and_again(store: Store) -> None:
    ports = [free_port(), free_port()]
    add_rows(store, 1, 5)
    async with running(store, _settings(*ports)) as uplink:
        seen: set[str] = set()
        uplink.on_state.append(lambda: seen.add(uplink.error.partition(": ")[0]))
        await until(lambda: {f"127.0.0.1:{port}" for port in ports} <= seen)
        broker = FleetBroker()
        broker.port = ports[0]
        await broker.start()
        await until(lambda: store.outbox.rows == 0)
        await broker.stop()


async def test_nothing_is_lost_or_sent_to_both_where_one_goes_and_comes_back(
    store: Store, fleet_broker: FleetBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uplink_module, "RETURN_SECONDS", 0.2)
    monkeypatch.setattr(uplink_module, "CHECK_SECONDS", 0.05)
    first = FleetBroker()
    await first.start()
    async with running(store, _settings(first.port, fleet_broker.port)) as uplink:
        await connected(uplink)
        add_rows(store, 1, 20)
        await until(lambda: store.outbox.rows == 0)
        await first.stop()
        add_rows(store, 21, 40)
        await until(lambda: store.outbox.rows == 0)
        assert uplink.destination.name.endswith(str(fleet_broker.port))
        again = FleetBroker()
        again.port = first.port
        await again.start()
        await until(lambda: uplink.destination.name.endswith(str(again.port)))
        await connected(uplink)
        add_rows(store, 41, 60)
        await until(lambda: store.outbox.rows == 0)
    numbers = [numbers_of(broker) for broker in (first, fleet_broker, again)]
    assert numbers == [[*range(1, 21)], [*range(21, 41)], [*range(41, 61)]]
    await again.stop()

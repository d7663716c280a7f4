"""The day's bytes: counted, renewed at midnight, kept on disk, and shared out."""

import asyncio
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

import gateway.uplink.link.schedule as gate_module
import gateway.uplink.uplink as uplink_module
from gateway.clock import Clock
from gateway.counters import Counters
from gateway.storage.state.uplink_state import UplinkUsage
from gateway.uplink.link.budget import Budget, Metering
from gateway.uplink.uplink import Uplink
from tests.support.disk.storage import Store, open_store, until
from tests.support.fleet.fleet_broker import FleetBroker
from tests.support.fleet.uplinks import add_rows, connected, make_uplink, uplink_settings

ZONE = ZoneInfo("Europe/Berlin")


def _at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZONE).timestamp()


def test_the_backlog_waits_before_live_messages_do() -> None:
    budget, now = Budget(1_000, zone=ZONE), _at("2026-11-21 12:00")
    states = []
    for size in (799, 1, 199, 1):
        budget.spend(size, now)
        states.append((budget.backlog_spent(now), budget.spent(now)))
    assert states == [(False, False), (True, False), (True, False), (True, True)]


def test_midnight_renews_it_where_the_board_is() -> None:
    budget = Budget(1_000, zone=ZONE)
    evening = _at("2026-10-24 23:59")
    budget.spend(5_000, evening)
    midnight = budget.renewed(evening)
    assert midnight == _at("2026-10-25 00:00")
    assert budget.spent(midnight - 1)
    assert not budget.spent(midnight)
    assert budget.used == 0
    assert budget.renewed(midnight) - midnight == 25 * 3600  # the day has an hour more


def test_a_clock_that_is_set_back_gives_no_second_budget() -> None:
    budget = Budget(1_000, zone=ZONE)
    budget.spend(1_000, _at("2026-11-21 12:00"))
    assert budget.spent(_at("2026-11-20 12:00"))


async def test_a_restart_remembers_what_was_used(tmp_path: Path) -> None:
    store = await open_store(tmp_path)
    usage = UplinkUsage(store.database, store.writer)
    assert await usage.load() == (0, 0)
    usage.save(739_000, 17)
    usage.save(739_000, 40)
    await store.close()
    store = await open_store(tmp_path)
    assert await UplinkUsage(store.database, store.writer).load() == (739_000, 40)
    await store.close()


def test_without_a_budget_everything_goes() -> None:
    counters = Counters()
    metering = Metering(None, None, counters, Clock())
    metering.count(10**12)
    assert not metering.spent
    assert not metering.backlog_spent
    assert counters.values == {}


def _uplink(store: Store, port: int, limit: int, **fields: Any) -> Uplink:
    metering = Metering(Budget(limit), None, store.counters, Clock())
    return make_uplink(store, uplink_settings(port, **fields), metering=metering)


async def test_what_connections_carry_is_counted_both_ways(
    store: Store, fleet_broker: FleetBroker
) -> None:
    uplink = _uplink(store, fleet_broker.port, 1_000_000)
    await uplink.start()
    await connected(uplink)
    add_rows(store, 1, 20, payload=bytes(1_000))
    await until(lambda: store.outbox.rows == 0)
    await uplink.close()
    used = store.counters.count("tidegate/uplink/budget_used")
    received = fleet_broker.bytes_received
    assert received + 21 * 4 <= used <= received + 21 * 6 + 30  # PUBACKs and a CONNACK
    assert store.counters.values["tidegate/uplink/budget"] == 1_000_000


async def test_a_used_up_budget_takes_the_link_down_until_tomorrow(
    store: Store, fleet_broker: FleetBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uplink_module, "CHECK_SECONDS", 0.02)
    uplink = _uplink(store, fleet_broker.port, 10_000)
    await uplink.start()
    await connected(uplink)
    for seq in range(1, 31):
        add_rows(store, seq, seq, payload=bytes(1_000))
        await asyncio.sleep(0.01)
    await until(lambda: uplink.state == "waiting")
    assert store.outbox.rows > 0
    assert str(store.counters.values["tidegate/uplink/error"]).startswith(
        "the budget of today is used up: waiting until 2"
    )
    assert store.counters.count("tidegate/uplink/budget_used") < 20_000
    await uplink.close()


async def test_at_four_fifths_only_live_messages_go(
    store: Store, fleet_broker: FleetBroker
) -> None:
    add_rows(store, 1, 30, payload=bytes(1_000))
    await store.settle()
    uplink = _uplink(store, fleet_broker.port, 20_000, window=2)  # how far beyond 16,000 it may get
    await uplink.start()
    await until(lambda: store.counters.count("tidegate/uplink/budget_used") >= 16_000)
    await until(lambda: store.counters.values["tidegate/uplink/inflight"] == 0)
    left = store.outbox.rows
    add_rows(store, 31, 31)
    await until(lambda: fleet_broker.data[-1].payload == b'{"value":31}')
    await until(lambda: 0 < store.outbox.rows <= left)
    await uplink.close()


async def test_outside_of_its_schedule_the_link_waits(
    store: Store, fleet_broker: FleetBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uplink_module, "CHECK_SECONDS", 0.02)
    monkeypatch.setattr(gate_module, "LONGEST_WAIT", 0.02)
    schedule = _Switch()
    monkeypatch.setattr(uplink_module, "schedule_of", lambda _windows: schedule)
    uplink = make_uplink(store, uplink_settings(fleet_broker.port))
    await uplink.start()
    await until(lambda: uplink.state == "waiting")
    assert "outside of its schedule" in str(store.counters.values["tidegate/uplink/error"])
    schedule.open = True
    await connected(uplink)
    schedule.open = False
    await until(lambda: uplink.state == "waiting")
    assert len(fleet_broker.disconnects) == 1
    uplink.pause()
    await until(lambda: uplink.state == "paused")
    await uplink.close()


class _Switch:
    """A schedule that is open when a test says so."""

    open = False

    def is_open(self, _now: float) -> bool:
        return self.open

    def opens(self, now: float) -> float | None:
        return None if self.open else now + 3600

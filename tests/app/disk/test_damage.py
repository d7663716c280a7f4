"""A gateway whose database goes bad in use ends, unless that would help nobody."""

import asyncio
import sqlite3
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from gateway.app.clock_stamp import ClockStamp, open_clock_stamp
from gateway.app.disk import damage
from gateway.clock import Clock
from gateway.config.load import bare
from gateway.storage.engine.damage import note_damage, noted_damage
from gateway.storage.engine.database import FILE_NAME, Database
from tests.support.clocks import SetClock
from tests.support.gateway_here import Gateway
from tests.support.ports import free_port


async def started(folder: Path, stack: AsyncExitStack) -> Gateway:
    gateway = Gateway(bare(free_port()), folder, stack)
    await gateway.start()
    return gateway


def find_damage(database: Database) -> None:
    error = sqlite3.DatabaseError("database disk image is malformed")
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    assert database.writer.on_error is not None
    database.writer.on_error(error)


def alarm(gateway: Gateway) -> str:
    message = gateway.broker.retained.get("$SYS/broker/tidegate/alarm/database")
    assert message is not None
    return message.packets.one(0).decode()


async def test_it_tells_and_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(damage, "REPORT_SECONDS", 0.01)
    async with AsyncExitStack() as stack:
        gateway = await started(tmp_path, stack)
        find_damage(gateway.database)
        assert gateway.writer.full
        assert not gateway.ended.is_set()
        assert damage.ENDS in alarm(gateway)
        await asyncio.wait_for(gateway.ended.wait(), 60)
        assert gateway.fault == "the database is damaged (database disk image is malformed)"


async def test_what_was_set_aside_before_a_clock_began_anew_hinders_nothing(tmp_path: Path) -> None:
    """A board without a clock of its own begins with 1970."""
    path = tmp_path / FILE_NAME
    path.touch()
    path.with_name(f"{FILE_NAME}.corrupt-20251121T154640Z").touch()
    async with AsyncExitStack() as stack:
        gateway = Gateway(bare(free_port()), tmp_path, stack)
        gateway.clock = SetClock(0)
        damage.have_it_salvaged(gateway, ValueError("of another world"))
    assert noted_damage(path) == "ValueError: of another world"


async def test_asked_to_end_before_it_was_no_fault(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        gateway = await started(tmp_path, stack)
        gateway.end()
        gateway.end("something")
        assert not gateway.fault


async def test_a_disk_that_spoils_what_was_salvaged_does_not_fill_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(damage, "REPORT_SECONDS", 0.0)
    async with AsyncExitStack() as stack:
        await started(tmp_path, stack)
    note_damage(tmp_path / FILE_NAME, "a page was bad")
    async with AsyncExitStack() as stack:
        gateway = await started(tmp_path, stack)
        assert gateway.database.salvage is not None
        find_damage(gateway.database)
        assert damage.ENDS_LATER in alarm(gateway)
        await asyncio.sleep(0.05)
        assert not gateway.ended.is_set()


async def test_it_stays_when_the_next_start_would_not_know(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(damage, "REPORT_SECONDS", 0.0)
    async with AsyncExitStack() as stack:
        gateway = await started(tmp_path, stack)
        (tmp_path / (FILE_NAME + ".damaged")).mkdir()  # takes no text
        find_damage(gateway.database)
        assert damage.STAYS in alarm(gateway)
        await asyncio.sleep(0.05)
        assert not gateway.ended.is_set()


async def test_damage_found_before_there_is_any_telemetry_is_told_by_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def find_early(clock: Clock, database: Database) -> ClockStamp:
        find_damage(database)
        return await open_clock_stamp(clock, database)

    monkeypatch.setattr("gateway.app.start.open_clock_stamp", find_early)
    async with AsyncExitStack() as stack:
        gateway = await started(tmp_path, stack)
        assert damage.ENDS in alarm(gateway)

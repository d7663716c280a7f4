import json
import sqlite3
from contextlib import AsyncExitStack, closing
from pathlib import Path

import pytest

from gateway.app.disk import wear
from gateway.app.disk.wear import Wear
from gateway.config.load import load
from gateway.storage.state.daily_writes import Written, written
from tests.support.clocks import ManualClock
from tests.support.gateway_here import Gateway
from tests.support.ports import free_port


@pytest.fixture
def io(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Give a list whose last number is what Linux says was written."""
    numbers = [0]
    monkeypatch.setattr(wear, "bytes_written", lambda: numbers[-1])
    return numbers


async def gateway_in(
    folder: Path, stack: AsyncExitStack, clock: ManualClock, settings: str = ""
) -> Gateway:
    file = folder / "gateway.toml"
    file.write_text(f"[[listener]]\nport = {free_port()}\n{settings}")
    gateway = Gateway(load(file), folder / "data", stack)
    gateway.clock = clock
    await gateway.start()
    return gateway


async def test_what_is_written_is_shown_and_noted(tmp_path: Path, io: list[int]) -> None:
    async with AsyncExitStack() as stack:
        clock = ManualClock()
        gateway = await gateway_in(tmp_path, stack, clock)
        watch = Wear(gateway, gateway.writer)
        watch.update()
        clock.step(100.0)
        io[-1] = 100_000
        watch.update()
        counters = gateway.counters
        assert counters.count("tidegate/storage/written_bytes") == 100_000
        assert counters.count("tidegate/storage/written_per_day") == 86_400_000
        assert counters.count("tidegate/storage/stretch_percent") == 100
        watch.start()
        watch.stop()
    with closing(sqlite3.connect(tmp_path / "data" / "tidegate.db")) as connection:
        noted = written(connection)
    assert noted.written >= 100_000
    assert noted.seconds >= 100


async def test_too_much_raises_an_alarm_until_it_ends(tmp_path: Path, io: list[int]) -> None:
    async with AsyncExitStack() as stack:
        settings = '[storage]\nwrite_budget = "1MB/day"\nendurance = "1GB"\n'
        clock = ManualClock()
        gateway = await gateway_in(tmp_path, stack, clock, settings)
        watch = Wear(gateway, gateway.writer)
        for step in range(80):
            clock.step(10.0)
            io[-1] = step * 10_000
            watch.update()
        assert gateway.writer.stretch == 1.0
        assert gateway.counters.count("tidegate/storage/card_days") == 11
        assert "above the write budget of 1.0 MB a day" in alarm(gateway)
        for _ in range(720):
            clock.step(10.0)
            watch.update()
        assert alarm(gateway) == ""
        assert gateway.writer.stretch < 1.0


def alarm(gateway: Gateway) -> str:
    topic = "$SYS/broker/tidegate/alarm/write_budget"
    found = gateway.broker.retained.find(topic, 0.0)
    return str(json.loads(found[0].packets.one(0))["text"]) if found else ""


async def test_where_linux_does_not_count_nothing_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wear, "bytes_written", lambda: None)
    async with AsyncExitStack() as stack:
        gateway = await gateway_in(tmp_path, stack, ManualClock())
        watch = Wear(gateway, gateway.writer)
        watch.start()
        watch.stop()
    with closing(sqlite3.connect(tmp_path / "data" / "tidegate.db")) as connection:
        assert written(connection) == Written(0, 0, 0)

"""What a gateway says of its disk, and whom it refuses for it."""

import sqlite3
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from gateway.app.disk.storage import show_durability
from gateway.config.configuration import Configuration
from gateway.config.load import load
from gateway.counters import Counters
from gateway.settings.listener import ListenerSettings
from gateway.settings.storage import DurabilityRule, StorageSettings
from gateway.storage.engine.damage import note_damage, noted_damage
from gateway.storage.engine.database import FILE_NAME
from tests.support.gateway_here import Gateway
from tests.support.ports import free_port


async def started(folder: Path, stack: AsyncExitStack) -> tuple[Gateway, dict[str, str]]:
    file = folder / "gateway.toml"
    file.write_text(f"[[listener]]\nport = {free_port()}\n[uplink]\n")
    gateway = Gateway(load(file), folder / "data", stack)
    await gateway.start()
    alarms: dict[str, str] = {}

    def alarm(name: str, text: str) -> None:
        alarms[name] = text

    gateway.alarm.publish(alarm)
    return gateway, alarms


def refuses(gateway: Gateway) -> bool:
    return gateway.writer.full


async def test_damage_in_use_refuses_publishers_and_asks_for_a_restart(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        gateway, alarms = await started(tmp_path, stack)
        assert not refuses(gateway)
        connection = gateway.database.reader
        assert connection.on_error is not None
        busy = sqlite3.OperationalError("database is locked")
        busy.sqlite_errorcode = sqlite3.SQLITE_BUSY
        connection.on_error(busy)
        assert not refuses(gateway)
        assert alarms == {}
        error = sqlite3.DatabaseError("database disk image is malformed")
        error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT_INDEX
        connection.on_error(error)
        assert refuses(gateway)
        assert list(alarms) == ["database"]
        assert "next start" in alarms["database"]
        assert noted_damage(tmp_path / "data" / FILE_NAME) == str(error)


@pytest.mark.uncovered
async def test_what_was_salvaged_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with AsyncExitStack() as stack:
        await started(tmp_path, stack)
    note_damage(tmp_path / "data" / FILE_NAME, "a page was bad")
    async with AsyncExitStack() as stack:
        gateway, _ = await started(tmp_path, stack)
        assert gateway.counters.count("tidegate/storage/salvaged") > 0
        assert gateway.counters.values["tidegate/storage/lost"] == 0
        assert gateway.starts == 2
        alarm = gateway.broker.retained.get("$SYS/broker/tidegate/alarm/database")
        assert alarm is not None
        assert "rows were salvaged" in alarm.packets.one(0).decode()
    assert "set aside as tidegate.db.corrupt-" in caplog.text


@pytest.mark.parametrize("restarts", [0, 1])
async def test_a_file_of_which_nothing_could_be_read_is_told_at_each_start(
    tmp_path: Path, restarts: int
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / FILE_NAME).write_bytes(b"\xee" * 20_000)
    for _ in range(restarts):
        async with AsyncExitStack() as stack:
            await started(tmp_path, stack)
    async with AsyncExitStack() as stack:
        gateway, _ = await started(tmp_path, stack)
        alarm = gateway.broker.retained.get("$SYS/broker/tidegate/alarm/database")
        assert alarm is not None
        text = alarm.packets.one(0).decode()
        assert "could be read" in text
        assert "each start tries it again" in text
        assert not refuses(gateway)


CONFIGURATION = Configuration(
    "file",
    "barn",
    listeners=(ListenerSettings(), ListenerSettings(durability="memory")),
    storage=StorageSettings(durability="batch(50)", commit_delay=7),
    durability=(
        DurabilityRule("memory", topic="position/+"),
        DurabilityRule("batch(20)", client="sensor-*"),
    ),
)


def shown(configuration: Configuration, *, durable: bool = True) -> dict[str, object]:
    counters = Counters()
    show_durability(configuration, counters, durable=durable)
    return {
        name.removeprefix("tidegate/storage/"): value for name, value in counters.values.items()
    }


def test_what_is_promised_is_said() -> None:
    assert shown(Configuration("file", "barn")) == {
        "durability": "commit",
        "durability_classes": "",
        "commit_delay": 5,
    }
    assert shown(CONFIGURATION) == {
        "durability": "batch(50)",
        "durability_classes": "topic position/+: memory; client sensor-*: batch(20); "
        "listener[1]: memory",
        "commit_delay": 7,
    }


def test_memory_for_everything_is_said() -> None:
    assert shown(Configuration("file", "barn"), durable=False)["durability"] == "memory"

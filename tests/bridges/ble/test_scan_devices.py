"""What advertises around, with bleak itself and a BlueZ of the tests' own."""

import asyncio
import shutil
import tomllib

import pytest

from gateway.bridges.ble import scan_devices as module
from gateway.bridges.ble.ble_settings import BleSettings
from gateway.bridges.ble.decoders import Advertisement
from gateway.bridges.ble.scan_devices import Air, scan_devices
from gateway.bridges.kind import ScanOptions
from gateway.cli.bridges import scan_lines
from gateway.config.reader import Reader
from tests.bridges.ble.test_ble_bridge import ADDRESS, BTHOME, bthome, bus, encrypted
from tests.support.disk.storage import until
from tests.support.nodes.fake_bluez import Bus, FakeBluez

__all__ = ["bus"]

pytestmark = pytest.mark.skipif(
    shutil.which("dbus-daemon") is None, reason="needs dbus-daemon: apt-get install dbus"
)

STRANGER, SEALED = "AA:BB:CC:00:00:01", "A4:C1:38:00:00:02"


async def test_devices_are_listed_with_what_they_say(bus: Bus) -> None:
    reported: list[str] = []
    async with FakeBluez(bus.address) as bluez:
        scanning = asyncio.create_task(scan_devices(ScanOptions(reported.append, (), 1.0)))
        await until(lambda: bluez.adapter.discovering)
        bluez.add(ADDRESS).advertise({BTHOME: bthome(1)}, rssi=-61)
        bluez.add(STRANGER).advertise({}, rssi=-40)
        bluez.add(SEALED).advertise({BTHOME: encrypted(1, b"\x02\xca\x09")}, rssi=-50)
        found = await scanning
    assert [each.values for each in found] == [
        {"adapter": "hci0"},
        {"address": SEALED, "node": "a4c138000002"},
        {"address": ADDRESS, "node": "a4c138112233"},
    ]
    assert any("encrypted: add key" in each for each in found[1].comments)
    assert any("temperature 25.06 °C" in each for each in found[2].comments)
    assert reported == [
        "hci0: listening for 1 s",
        "hci0: 1 devices advertise nothing that can be decoded",
    ]
    (content,) = tomllib.loads("\n".join(scan_lines(found)))["ble"]
    reader = Reader("tidegate.toml")
    assert len(reader.read(BleSettings, content).device) == 2
    assert not reader.mistakes


async def test_without_bluetooth_it_says_so(bus: Bus) -> None:
    reported: list[str] = []
    assert await scan_devices(ScanOptions(reported.append, ("hci7",), 0.1)) == []
    assert reported[-1].startswith("hci7: ")


def test_devices_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DEVICES_MAX", 2)
    air = Air()
    for number in range(4):
        service = {BTHOME: bthome(1)}
        air.add(Advertisement(f"A4:C1:38:00:00:0{number}", "x", -60, service, {}, [], 1.0))
    assert len(air.values) == 2
    assert air.others == 0

"""The board's temperatures: those that can be read, and word of none."""

import asyncio
from pathlib import Path

import pytest

from gateway.bridges.supervision.interfaces import BridgeError
from gateway.bridges.thermal import ThermalBridge, ThermalSettings
from tests.support.disk.storage import until
from tests.support.nodes.bridges import Gateway


def zone(folder: Path, number: int, text: str) -> None:
    place = folder / f"thermal_zone{number}"
    place.mkdir()
    (place / "temp").write_text(text)


async def test_each_zone_that_can_be_read_is_a_node(tmp_path: Path) -> None:
    zone(tmp_path, 0, "45123\n")
    zone(tmp_path, 1, "")
    zone(tmp_path, 2, "-500\n")
    gateway = Gateway.make()
    settings = ThermalSettings(folder=str(tmp_path), node="pi", interval=0.01)
    task = asyncio.create_task(ThermalBridge(settings, gateway.host()).run())
    await until(lambda: len(gateway.broker.messages) >= 4)
    task.cancel()
    assert [(topic, fields["value"]) for topic, fields in gateway.broker.readings[:2]] == [
        ("sensors/pi-zone0/temperature", 45.123),
        ("sensors/pi-zone2/temperature", -0.5),
    ]


async def test_without_a_zone_it_says_so(tmp_path: Path) -> None:
    settings = ThermalSettings(folder=str(tmp_path))
    with pytest.raises(BridgeError, match="no temperature in"):
        await ThermalBridge(settings, Gateway.make().host()).run()

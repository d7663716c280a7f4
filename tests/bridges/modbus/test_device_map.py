"""Maps of devices: those that come along are whole, and a bus takes them by name or path."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from gateway.bridges.modbus.device_map import MAPS, map_names, read_map
from gateway.bridges.modbus.modbus_bridge import KIND
from gateway.bridges.modbus.modbus_settings import ModbusSettings
from gateway.bridges.modbus.requests import plan
from gateway.bridges.readings.registry import base_quantity
from gateway.config.reader import Reader
from tests.support.table import table

PAGE = Path(__file__).parents[3] / "docs/use/bridges.md"


def settings(tables: dict[str, Any]) -> tuple[ModbusSettings | None, str]:
    reader = Reader("tidegate.toml")
    try:
        found = reader.read(ModbusSettings, {"port": "tcp://192.0.2.1", **tables})
    except ValueError as error:
        return None, str(error)
    return found, " ".join(str(each) for each in reader.mistakes)


@table("name", map_names())
def test_a_map_that_comes_along(name: str) -> None:
    found = read_map(MAPS / f"{name}.toml")
    assert found.source
    assert found.title in PAGE.read_text()
    assert f"`{name}`" in PAGE.read_text()
    topics = [each.topic("m") for each in found.register]
    assert len(set(topics)) == len(topics), "each series has one register"
    for each in found.register:
        known = base_quantity(each.quantity)
        assert known is not None, each.quantity
        assert each.unit in known.units, each
    own = (replace(each, scale_address=None) for each in found.register)
    addresses = sorted((each.address, each.address + each.size) for each in own)
    ends = pairwise(addresses)
    assert all(end <= start for (_, end), (start, _) in ends), "no two overlap"


def test_there_are_ten_or_more() -> None:
    assert len(map_names()) >= 10


def test_a_bus_with_devices_by_name_and_by_path(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text(
        'title = "Own"\nsource = "me"\ntype = "int16"\n'
        '[[register]]\naddress = 5\nquantity = "temperature"\nunit = "°C"\ninterval = 60\n'
        '[[register]]\naddress = 7\nquantity = "level"\ntype = "uint32"\n'
    )
    devices = [
        {"map": "sdm120", "node": "heatpump", "interval": 2},
        {"map": "sdm120", "node": "cellar", "device": 7},
        {"map": str(file), "device": 9},
    ]
    own = [{"address": 0, "quantity": "count"}]
    found, mistakes = settings({"device": devices, "register": own})
    assert found is not None
    assert mistakes == ""
    heat, cellar, small = (
        [each for each in found.registers if each.device == number and each.quantity != "count"]
        for number in (1, 7, 9)
    )
    assert {each.interval for each in heat} == {2}
    assert {each.interval for each in cellar} == {10}
    assert [(each.type, each.interval) for each in small] == [("int16", 60), ("uint32", 10)]
    topics = [topic for _, topic in KIND.series(found, "bus")]
    assert len(topics) == len(set(topics)) == len(found.registers)
    assert "sensors/heatpump/voltage" in topics
    assert "sensors/bus/temperature" in topics
    assert [each.number for each in plan(found.registers)] == [1, 7, 9]


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({}, "1 to 1000 tables [[modbus.register]], or"),
    ({"device": [{"map": "sdm999"}]}, "one of abb_b23, "),
    ({"device": [{"map": "broken.toml"}]}, "a map without a mistake: "),
]


@table("tables, reason", MISTAKES)
def test_maps_that_are_none(
    tables: dict[str, Any], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.toml").write_text('title = "x"\nsource = "y"\n[[register]]\naddress = 1\n')
    _, mistakes = settings(tables)
    assert reason in mistakes


def test_sunspec_scales_by_registers_behind_the_values() -> None:
    """A night and a day of an inverter; its own example: 2,315 with -1 is 231.5 V."""
    found = read_map(MAPS / "sunspec.toml").register
    (device,) = plan(found)
    assert [each.count for each in device.requests] == [5, 28], "each scale with its values"
    by_name = {f"{each.quantity}/{each.instance}": each for each in found}
    assert by_name["voltage/l1"].value([2315, 2320, 2309, 0xFFFF]) == 231.5
    assert by_name["power/None"].value([0xFFF6, 2]) == -1000
    assert by_name["energy/None"].value([1, 0, 0]) == 65_536
    assert by_name["power/None"].is_invalid([0x8000, 0])
    assert by_name["power/None"].is_invalid([10, 0x8000])
    assert not by_name["power/None"].is_invalid([10, 0xFFFE])


@table("name", ["sun2000", "abb_b23"])
def test_a_device_without_values(name: str) -> None:
    """These signed numbers without a value are the highest, which is not what is usual."""
    registers = read_map(MAPS / f"{name}.toml").register
    marked = {"int16": [0x7FFF], "int32": [0x7FFF, 0xFFFF]}
    for each in registers:
        words = marked.get(each.type, [0xFFFF] * each.size)
        assert each.is_invalid(words), each.quantity
        assert not each.is_invalid([0] * each.size), each.quantity

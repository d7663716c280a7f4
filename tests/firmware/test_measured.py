"""Which of several sensors of one quantity a reading is from, by the settings alone."""

from typing import Any

import pytest
from node.measured import CHOSEN, QUANTITIES, instances
from node.sensors import Sensors

from gateway.flashing.hardware import SENSORS
from tests.support.table import table

WIRED = {"sda": 4, "scl": 5}

CASES: list[tuple[list[dict[str, Any]], list[dict[str, str]]]] = [
    ([{"driver": "bme280", **WIRED, "address": 118}], [{}]),
    (
        [{"driver": "bme280", **WIRED, "address": 118}, {"driver": "internal"}],
        [{}, {"temperature": "internal"}],
    ),
    (
        [{"driver": "bme280", "address": 118}, {"driver": "bme280", "address": 119}],
        [{}, dict.fromkeys(("temperature", "humidity", "pressure"), "bme280-119")],
    ),
    ([{"driver": "adc", "pin": 26}, {"driver": "adc", "pin": 27}], [{}, {"voltage": "adc-27"}]),
    ([{"driver": "adc", "pin": 26}, {"driver": "adc", "pin": 27, "quantity": "level"}], [{}, {}]),
    ([{"driver": "hx711", "pin": 4}, {"driver": "hx711", "pin": 6}], [{}, {"weight": "hx711-6"}]),
    (
        [{"driver": "dht22", "pin": 4, "name": "attic"}, {"driver": "internal"}],
        [{"*": "attic"}, {}],
    ),
    ([{"driver": "none"}, {"pin": 4}], [{}, {}]),
]


@table("sensors, expected", CASES)
def test_instances(sensors: list[dict[str, Any]], expected: list[dict[str, str]]) -> None:
    assert instances(sensors) == expected


def test_both_sides_know_what_a_driver_measures() -> None:
    known = {name: kind.quantities for name, kind in SENSORS.items() if kind.quantities}
    assert known == {name: tuple(words.split()) for name, words in QUANTITIES.items()}
    assert {name: kind.chosen for name, kind in SENSORS.items() if kind.chosen} == CHOSEN


def test_a_sensor_keeps_its_series_whatever_becomes_of_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Simulated:
        fails = False

        def read(self) -> list[tuple[str, tuple[int, int], str]]:
            if self.fails:
                raise OSError("no answer")
            return [("temperature", (215, -1), "°C"), ("level/2", (1, 0), "%")]

    made: list[Simulated] = []

    def make(_settings: dict[str, Any]) -> Simulated:
        made.append(Simulated())
        return made[-1]

    monkeypatch.setattr("node.sensors._make", make)
    settings = [{"driver": "sht3x"}, {"driver": "internal"}, {"driver": "dht22", "name": "attic"}]
    sensors = Sensors({"sensors": settings}, lambda: None)
    own = ["temperature", "level/2"]
    second = ["temperature/internal", "level/2"]
    third = ["temperature/attic", "level/2"]
    assert [each[0] for each in sensors.read()] == own + second + third
    made[0].fails = True
    assert [each[0] for each in sensors.read()] == second + third

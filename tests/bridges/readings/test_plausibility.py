"""What cannot be right is marked: out of range, totals that fall or jump."""

import pytest

from gateway.bridges.readings.reading import Reading, Value
from gateway.bridges.readings.reading_publisher import FELL, JUMPED, OUT_OF_RANGE, Plausibility
from tests.support.nodes.bridges import Gateway
from tests.support.table import table

RANGES: list[tuple[str, Value, str | None, str]] = [
    ("temperature", 21.5, "°C", ""),
    ("temperature", -127, "°C", OUT_OF_RANGE),
    ("temperature", 212, "°F", ""),
    ("temperature", -200, "°F", OUT_OF_RANGE),
    ("temperature", -127, None, ""),  # who knows
    ("temperature_2", 6553.5, "°C", OUT_OF_RANGE),
    ("humidity", 101, "%", OUT_OF_RANGE),
    ("atmospheric_pressure", 1.0, "bar", ""),
    ("atmospheric_pressure", 0, "Pa", OUT_OF_RANGE),
    ("energy", -1, "Wh", OUT_OF_RANGE),
    ("ph", 15, None, OUT_OF_RANGE),
    ("shoe_size", 1e9, None, ""),
    ("motion", True, None, ""),
    ("temperature", "warm", None, ""),
]


@table("quantity, value, unit, expected", RANGES)
def test_ranges(quantity: str, value: Value, unit: str | None, expected: str) -> None:
    assert Plausibility().quality(Reading("n", quantity, value, unit, 1)) == expected


def test_totals_that_fall_or_jump() -> None:
    plausibility = Plausibility()

    def judged(time: int, value: float, unit: str = "kWh", instance: str = "") -> str:
        return plausibility.quality(Reading("n", "energy", value, unit, time, instance))

    values = [(1, 1000.1, ""), (2, 1000.2, ""), (3, 900_004.4, JUMPED), (4, 1000.3, FELL)]
    values += [(5, 0, FELL), (6, 0.1, ""), (3, 0, ""), (7, 0.2, "")]
    for time, value, expected in values:
        assert judged(time, value) == expected, (time, value)
    assert judged(8, 300, "Wh") == ""
    assert judged(8, 5, instance="t2") == "", "another series"
    assert [judged(9, value, instance="today") for value in (5, 0)] == ["", ""], "a new day"


def test_what_is_wrong_is_published_marked_counted_and_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    gateway = Gateway.make()
    host = gateway.host()
    for value in (21, -127, -127):
        host.read("n1", "temperature", value, "°C")
    assert [each.get("quality") for _, each in gateway.broker.readings] == [
        None,
        OUT_OF_RANGE,
        OUT_OF_RANGE,
    ]
    assert gateway.figure("test/marked") == 2
    assert caplog.text.count("out of range: sensors/n1/temperature -127 °C") == 1

import pytest
from rich.cells import cell_len

from tui.sensors import Sensor, Sensors
from tui.widgets.sensor_columns import MARK_WIDTH, columns_for, heading, row_of

NOW = 1_763_740_000.0


def a_sensor() -> Sensor:
    sensors = Sensors()
    for value in (20, 24, 22):
        sensors.hear("sensors/barn/temperature", b'{"value":%d,"unit":"\xc2\xb0C"}' % value, NOW)
    sensor = sensors.get("sensors/barn/temperature")
    assert sensor is not None
    return sensor


@pytest.mark.parametrize("width", [28, 38, 43, 44, 52, 65, 66, 100, 200])
def test_a_row_and_the_heading_fill_the_width(width: int) -> None:
    columns = columns_for(width)
    for row in (heading(columns), row_of(a_sensor(), columns, NOW, late=False)):
        cells = MARK_WIDTH + sum(map(cell_len, row[1:])) + 3 + (1 if columns.trend else 0)
        assert cells == width


@pytest.mark.parametrize(
    ("late", "age", "mark"), [(False, 0.5, "•"), (False, 1.0, " "), (True, 0.5, "!")]
)
def test_the_mark(late: bool, age: float, mark: str) -> None:
    assert row_of(a_sensor(), columns_for(80), NOW + age, late=late).mark == mark


def test_the_trend_is_left_out_where_there_is_no_room() -> None:
    assert columns_for(43).trend == 0
    assert row_of(a_sensor(), columns_for(44), NOW, late=False).trend == "▁▇▄   "

"""Named values to readings, by the registry and by what the configuration says."""

import math

import pytest

from gateway.bridges.readings.reading_map import FIELDS_MAX, NO_MAP, reading_map
from tests.support.table import table

Reading = tuple[str, object, str | None]

MAP = reading_map(
    {
        "t1": "temperature",
        "bat_mv": {"quantity": "voltage", "unit": "V", "scale": 0.001},
        "f": {"quantity": "temp", "unit": "°F", "offset": 1},
        "BME280.Temperature": "pressure",
        "debug": False,
        "id": "count",
        "t2": "temperature_c",
        "probe": {"quantity": "temperature", "unit": "°C", "invalid": [-127, 85]},
    }
)

GONE = pytest.approx(math.nan, nan_ok=True)
"""What a text gives that is no number: it is refused, and costs nothing else."""

OBJECTS: list[tuple[dict[str, object], list[Reading]]] = [
    ({"temp": 21.3, "hum": 40}, [("temperature", 21.3, None), ("humidity", 40, "%")]),
    ({"t1": 1, "debug": 2, "x": "on"}, [("temperature", 1, None), ("x", "on", None)]),
    ({"t2": 1}, [("temperature", 1, "°C")]),
    ({"probe": -127.0}, []),
    ({"probe": 85}, []),
    ({"probe": True}, [("temperature", True, None)]),
    ({"V": 230.1, "I": 0.5, "P": 115}, [("V", 230.1, None), ("I", 0.5, None), ("P", 115, None)]),
    ({"t": 1763740000, "temp": 21.5}, [("t", 1763740000, None), ("temperature", 21.5, None)]),
    ({"battery": 3.71, "vbat": 3710}, [("battery", 3.71, None), ("voltage", 3710, None)]),
    ({"temp_f": 70, "tempC": 21}, [("temperature", 70, "°F"), ("temperature", 21, "°C")]),
    ({"temp": "x", "hum": True}, [("temperature", "x", None), ("humidity", True, None)]),
    ({"temp": " 21.5", "hum": "48"}, [("temperature", 21.5, None), ("humidity", 48, "%")]),
    ({"temp": "21.5 °C", "hum": "48 V"}, [("temperature", 21.5, "°C"), ("humidity", GONE, "%")]),
    ({"temp": "21,5", "hum": "-"}, [("temperature", GONE, None), ("humidity", GONE, "%")]),
    ({"temp": "N/A", "hum": ""}, [("temperature", GONE, None), ("humidity", GONE, "%")]),
    ({"bat_mv": "3700", "t2": "21"}, [("voltage", 3.7, "V"), ("temperature", 21, "°C")]),
    ({"power": "ON", "firmware": "7.2"}, [("power", "ON", None), ("firmware", "7.2", None)]),
    ({"TempUnit": "F", "A": {"Temperature": 70}}, [("temperature", 70, "°F")]),
    ({"battery": True, "gas": False}, [("battery_low", True, None), ("gas_detected", False, None)]),
    ({"temp_unit": "bananas", "temp": 70}, [("temperature", 70, None)]),
    ({"units": 5}, [("units", 5, None)]),
    ({"PMS5003": {"PM2.5": 7}}, [("pm25", 7, "μg/m³")]),
    ({"voltage_l1": 230, "temp_2": 5}, [("voltage_l1", 230, None), ("temperature_2", 5, None)]),
    ({"a": {"energy_day": 1}}, [("a.energy_day", 1, None)]),
    ({"bat_mv": 3300}, [("voltage", 3.3, "V")]),
    ({"f": True}, [("temperature", True, None)]),
    ({"f": 70}, [("temperature", 71, "°F")]),
    ({"BME280": {"Temperature": 5}}, [("pressure", 5, None)]),
    ({"AM2301": {"Temperature": 5}}, [("temperature", 5, None)]),
    ({"id": 7, "node": 8, "time": 9}, [("count", 7, None)]),
    ({"a": {"b": {"c": 1, "d": {"e": 1}}}}, [("a.b.c", 1, None)]),
    ({"a": None, "b": [1], "motion": False}, [("motion", False, None)]),
    ({"bat_mv": 10**400}, [("voltage", math.inf, "V")]),
    ({"temp": {"value": 70, "unit": "F"}}, [("temperature", 70, "°F")]),
    ({"hum": {"value": "40", "time": 5}}, [("humidity", 40, "%")]),
    ({"t1": {"value": 4}}, [("temperature", 4, None)]),
    ({"x": {"value": 4, "unit": "V"}}, [("x.value", 4, "V")]),
    ({"x": {"value": 4, "max": 5}}, [("x.value", 4, None), ("x.max", 5, None)]),
    ({}, []),
]


@table(("values", "found"), OBJECTS)
def test_objects(values: dict[str, object], found: list[Reading]) -> None:
    assert [each[:3] for each in MAP.readings(values)] == found


LISTS: list[tuple[list[object], list[tuple[str, object]]]] = [
    ([{"id": "a", "temp_c": 1}, {"id": "b", "temp_c": 2}], [("a", 1), ("b", 2)]),
    ([{"id": 7, "temp_c": 1}, {"name": "x/y", "temp_c": 2}], [("7", 1), ("x-y", 2)]),
    ([{"temp_c": 1}, 5, {"temp_c": 2}], [("1", 1), ("3", 2)]),
    ([{"Addr": "28FF:641E", "temp": {"value": 3, "unit": "C"}}], [("28ff641e", 3)]),
    ([{"temp_c": place} for place in range(17)], []),
    ([{"id": True, "temp_c": 1}], [("1", 1)]),
]


@table(("values", "found"), LISTS)
def test_objects_of_a_list_are_instances(
    values: list[object], found: list[tuple[str, object]]
) -> None:
    readings = NO_MAP.readings({"sensors": values})
    assert [(each.instance, each.value) for each in readings] == found
    assert {(each.quantity, each.unit) for each in readings} <= {("temperature", "°C")}


def test_names_that_do_not_say_what_their_numbers_mean_are_told() -> None:
    values = {"V": 1, "temp": 2, "hum": 3, "ph": 7, "t1": 4, "id": 5, "x": "on", "temp_c": 6}
    unclear = [each.unclear for each in MAP.readings(values) if each.unclear]
    assert unclear == ["V", "temp", "t1"]


def test_a_unit_that_the_source_says_counts() -> None:
    (found,) = NO_MAP.readings({"temperature": 5}, {"temperature": "K"})
    assert found[:3] == ("temperature", 5, "K")


def test_a_strict_map_takes_what_it_names() -> None:
    strict = reading_map({"t1": "temperature", "*": False})
    assert [each[:2] for each in strict.readings({"t1": 1, "temp": 2, "x": 3})] == [
        ("temperature", 1)
    ]


def test_an_object_gives_a_bounded_number_of_readings() -> None:
    assert len(NO_MAP.readings({f"x{place}": 1 for place in range(1000)})) == FIELDS_MAX


@table(
    "table",
    [
        "temperature",
        {"a": 1},
        {"a": True},
        {"a": {"unit": "V"}},
        {"a": {"quantity": ""}},
        {"a": {"quantity": "x", "factor": 2}},
        {"a": {"quantity": "x", "scale": "2"}},
        {"a": {"quantity": "x", "scale": math.nan}},
        {"a": {"quantity": "x", "unit": 5}},
        {"a": {"quantity": "x", "invalid": 5}},
        {"a": {"quantity": "x", "invalid": ["5"]}},
    ],
)
def test_maps_that_cannot_be_used(table: object) -> None:
    with pytest.raises(ValueError, match=r"a table|a quantity|only|must be given|a list"):
        reading_map(table)

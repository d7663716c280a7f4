"""Named values to readings, by the registry and by what the configuration says."""

import math

import pytest

from gateway.bridges.readings.reading_map import FIELDS_MAX, NO_MAP, Found, reading_map

MAP = reading_map(
    {
        "t1": "temperature",
        "bat_mv": {"quantity": "voltage", "unit": "V", "scale": 0.001},
        "f": {"quantity": "temp", "unit": "°F", "offset": 1},
        "BME280.Temperature": "pressure",
        "debug": False,
        "id": "count",
    }
)

OBJECTS: list[tuple[dict[str, object], list[Found]]] = [
    ({"temp": 21.3, "hum": 40}, [("temperature", 21.3, "°C"), ("humidity", 40, "%")]),
    ({"t1": 1, "debug": 2, "x": "on"}, [("temperature", 1, "°C"), ("x", "on", None)]),
    ({"bat_mv": 3300}, [("voltage", 3.3, "V")]),
    ({"f": True}, [("temperature", True, "°F")]),
    ({"f": 70}, [("temperature", 71, "°F")]),
    ({"BME280": {"Temperature": 5}}, [("pressure", 5, "hPa")]),
    ({"AM2301": {"Temperature": 5}}, [("temperature", 5, "°C")]),
    ({"id": 7, "node": 8, "time": 9}, [("count", 7, None)]),
    ({"a": {"b": {"c": 1, "d": {"e": 1}}}}, [("a.b.c", 1, None)]),
    ({"a": None, "b": [1], "motion": False}, [("motion", False, None)]),
    ({"bat_mv": 10**400}, [("voltage", math.inf, "V")]),
    ({}, []),
]


@pytest.mark.parametrize(("values", "found"), OBJECTS)
def test_objects(values: dict[str, object], found: list[Found]) -> None:
    assert MAP.readings(values) == found


def test_a_strict_map_takes_what_it_names() -> None:
    strict = reading_map({"t1": "temperature", "*": False})
    assert strict.readings({"t1": 1, "temp": 2, "x": 3}) == [("temperature", 1, "°C")]


def test_an_object_gives_a_bounded_number_of_readings() -> None:
    assert len(NO_MAP.readings({f"x{place}": 1 for place in range(1000)})) == FIELDS_MAX


@pytest.mark.parametrize(
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
    ],
)
def test_maps_that_cannot_be_used(table: object) -> None:
    with pytest.raises(ValueError, match=r"a table|a quantity|only|must be given"):
        reading_map(table)

"""Quantities and units: each alias leads to a name, and the numbers of frames are known."""

import pytest

from gateway.bridges.readings import quantities
from gateway.bridges.readings.registry import (
    ALIASES,
    QUANTITIES,
    UNIT_ALIASES,
    base_quantity,
    instance_of,
    meaning,
    quantity_name,
    unit_name,
)
from tests.support.table import table

UNITS = {unit for quantity in QUANTITIES.values() for unit in quantity.units}


def test_aliases_lead_to_names_and_names_to_themselves() -> None:
    assert set(ALIASES.values()) <= set(QUANTITIES)
    assert not set(ALIASES) & set(QUANTITIES)
    assert set(UNIT_ALIASES.values()) <= UNITS
    assert not set(UNIT_ALIASES) & UNITS


def test_what_frames_can_say_is_known() -> None:
    assert {quantity_name(name) for name in quantities.QUANTITIES.values()} <= set(QUANTITIES)
    assert {unit_name(unit) for unit in quantities.UNITS.values()} <= {*UNITS, None}


NAMES = [
    ("temp", "temperature"),
    ("Temperature", "temperature"),
    ("HUM", "humidity"),
    ("rainfall", "precipitation"),
    ("particulates", "pm25"),
    ("contact", "opening"),
    ("heart_rate", "heart_rate"),
]


@table(("name", "quantity"), NAMES)
def test_names(name: str, quantity: str) -> None:
    assert quantity_name(name) == quantity


@pytest.mark.parametrize(
    ("written", "unit"),
    [
        ("C", "°C"),
        ("°C", "°C"),
        ("l", "L"),
        ("µg/m³", "μg/m³"),
        ("pH", None),
        ("bananas", "bananas"),
    ],
)
def test_units(written: str, unit: str | None) -> None:
    assert unit_name(written) == unit


MEANINGS = [
    *((letter, letter, None) for letter in "tThHpPvViIaAcCf"),
    ("temp", "temperature", None),
    ("temp_c", "temperature", "°C"),
    ("temp_degC", "temperature", "°C"),
    ("Außen [°C]", "Außen", "°C"),
    ("Zone (2)", "Zone (2)", None),
    ("pressure_kPa", "pressure", "kPa"),
    ("energy_mWh", "energy", "mWh"),
    ("CarbonDioxide", "carbon_dioxide", "ppm"),
    ("WindSpeed", "wind_speed", None),
    ("tempF", "temperature", "°F"),
    ("temperature_k", "temperature", "K"),
    ("temp_2_c", "temperature_2", "°C"),
    ("Temperature (°C)", "temperature", "°C"),
    ("Soil Moisture 1 [%]", "moisture_1", "%"),
    ("battery", "battery", None),
    ("battery_pct", "battery", "%"),
    ("battery_v", "voltage", "V"),
    ("battery_mV", "voltage", "mV"),
    ("pressure", "pressure", None),
    ("pressure_pa", "pressure", "Pa"),
    ("wind_kmh", "wind_speed", "km/h"),
    ("wind_m_s", "wind_speed", "m/s"),
    ("uptime_ms", "duration", "ms"),
    ("pm25_ug_m3", "pm25", "μg/m³"),
    ("pm2.5", "pm25", "μg/m³"),
    ("watts", "power", "W"),
    ("kWh", "energy", "kWh"),
    ("co2", "carbon_dioxide", "ppm"),
    ("current_a", "current_a", None),
    ("current_mA", "current", "mA"),
    ("voltage_l1", "voltage_l1", None),
    ("humidity_2", "humidity_2", "%"),
    ("temperature_alarm", "temperature_alarm", None),
    ("brightness", "brightness", None),
    ("heart_rate", "heart_rate", None),
    ("", "", None),
    ("_c", "_c", None),
]


@table(("name", "quantity", "unit"), MEANINGS)
def test_a_unit_is_taken_only_where_the_name_says_it(
    name: str, quantity: str, unit: str | None
) -> None:
    assert meaning(name) == (quantity, unit)


def test_quantities_of_names_with_more_behind_them() -> None:
    for name in ("voltage", "voltage_l1", "voltage_2", "volt", "volts_l1"):
        assert instance_of(name) == base_quantity(name) == QUANTITIES["voltage"]
    assert instance_of("temperature_water") is None
    assert base_quantity("temperature_water") == QUANTITIES["temperature"]
    assert base_quantity("heart_rate") is None

"""Quantities and units: each alias leads to a name, and the numbers of frames are known."""

import pytest

from gateway.bridges.readings import quantities
from gateway.bridges.readings.registry import (
    ALIASES,
    QUANTITIES,
    UNIT_ALIASES,
    quantity_name,
    unit_name,
)

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


@pytest.mark.parametrize(("name", "quantity"), NAMES)
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

"""The parsers of other makers' sensors, on advertisements as their devices send them."""

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.bridges.ble.decoders import Advertisement, Decoders, UndecodableError
from tests.support.table import table

XIAOMI = "0000fe95-0000-1000-8000-00805f9b34fb"

RUUVI = bytes.fromhex("0512FC5394C37C0004FFFC040CAC364200CDCBB8334C884F")
"""Data format 5, the test vector of its specification."""

GOVEE = b"\x00" + (213_442).to_bytes(3, "big") + b"\x64\x00"
"""H5075: temperature and humidity in one number, then the battery."""

MIBEACON = bytes.fromhex("5020aa01b0" + "64aed0a8654c" + "0d1004" + "db00" + "f901")
"""LYWSDCGQ: frame control, product, counter, address, and one object with two numbers."""

ADVERTISEMENTS: list[tuple[str, dict[str, Any], dict[str, tuple[object, str]]]] = [
    (
        "ruuvitag",
        {"manufacturer_data": {0x0499: RUUVI}},
        {
            "temperature": (24.3, "°C"),
            "humidity": (53.49, "%"),
            "pressure": (1000.44, "hPa"),
            "voltage": (2977, "mV"),
        },
    ),
    (
        "govee",
        {"name": "GVH5075_2762", "manufacturer_data": {0xEC88: GOVEE}},
        {"temperature": (21.3, "°C"), "humidity": (44.2, "%"), "battery": (100, "%")},
    ),
    (
        "xiaomi",
        {"service_data": {XIAOMI: MIBEACON}, "address": "4C:65:A8:D0:AE:64"},
        {"temperature": (21.9, "°C"), "humidity": (50.5, "%")},
    ),
]


def advertisement(**given: Any) -> Advertisement:
    fields: dict[str, Any] = {
        "address": "A4:C1:38:11:22:33",
        "name": None,
        "rssi": -60,
        "service_data": {},
        "manufacturer_data": {},
        "service_uuids": [],
        "time": 1.0,
    }
    return Advertisement(**fields | given)


def decoded(given: dict[str, Any]) -> dict[str, tuple[object, str | None]]:
    """Return what all installed decoders find, by quantity."""
    heard = advertisement(**given)
    found: dict[str, tuple[object, str | None]] = {}
    for decoder in Decoders().of_device(None):
        for quantity, value, unit, *_ in decoder.decode(heard) or []:
            found[quantity] = (value, unit)
    return found


@pytest.mark.uncovered
@table("maker, given, expected", ADVERTISEMENTS)
def test_other_makers_advertisements(
    maker: str, given: dict[str, Any], expected: dict[str, tuple[object, str]]
) -> None:
    found = decoded(given)
    assert {name: found.get(name) for name in expected} == expected


@pytest.mark.uncovered
@given(
    maker=st.sampled_from([0x0499, 0xEC88, 0x0001, 0x8803, 0x8801]),
    data=st.binary(max_size=64),
    service=st.binary(max_size=64),
    name=st.sampled_from([None, "GVH5075_2762", "GVH5179_1", "Ruuvi 884F", "LYWSD03MMC"]),
)
def test_any_bytes_are_decoded_or_refused(
    maker: int, data: bytes, service: bytes, name: str | None
) -> None:
    heard = advertisement(
        name=name, manufacturer_data={maker: data}, service_data={XIAOMI: service}
    )
    for decoder in Decoders().of_device(None):
        with contextlib.suppress(UndecodableError):
            decoder.decode(heard)

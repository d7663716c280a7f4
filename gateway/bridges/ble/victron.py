"""Victron's Instant Readout: encrypted advertisements, decoded by victron-ble.

A device's key is in VictronConnect, under Product info. Series have the names of VE.Direct's.
"""

from collections.abc import Iterator
from enum import Enum
from typing import Any

from gateway.bridges.ble.decoders import (
    MALFORMED,
    STRENGTH,
    Advertisement,
    Decoded,
    DecodedValue,
    UndecodableError,
)

MAKER = 0x02E1
READOUT = b"\x10"
"""The first byte of the data of an Instant Readout."""

KEY_CHECK = 7
"""The place of a byte that is the key's first one."""

LEAST = 9
"""Bytes of a readout with a value."""

SERIES = {
    **dict.fromkeys(("battery_voltage", "voltage"), ("voltage", "V", "")),
    **dict.fromkeys(
        ("battery_charging_current", "battery_current", "current"), ("current", "A", "")
    ),
    **dict.fromkeys(("temperature", "battery_temperature"), ("temperature", "°C", "")),
    **dict.fromkeys(("solar_power", "pv_power"), ("power", "W", "panel")),
    **dict.fromkeys(("ac_in_power", "active_ac_in_power"), ("power", "W", "ac_in")),
    **dict.fromkeys(("ac_out_power", "active_ac_out_power"), ("power", "W", "ac_out")),
    "soc": ("battery", "%", ""),
    "consumed_ah": ("charge_consumed", "Ah", ""),
    "remaining_mins": ("duration", "min", "time_to_go"),
    "starter_voltage": ("voltage", "V", "auxiliary"),
    "midpoint_voltage": ("voltage", "V", "midpoint"),
    "input_voltage": ("voltage", "V", "input"),
    "input_current": ("current", "A", "input"),
    "output_voltage": ("voltage", "V", "output"),
    "output_current": ("current", "A", "output"),
    "external_device_load": ("current", "A", "load"),
    "ac_voltage": ("voltage", "V", "ac_out"),
    "ac_current": ("current", "A", "ac_out"),
    "ac_apparent_power": ("apparent_power", "VA", "ac_out"),
    **{f"output_voltage{each}": ("voltage", "V", f"output{each}") for each in (1, 2, 3)},
    **{f"output_current{each}": ("current", "A", f"output{each}") for each in (1, 2, 3)},
}
"""The values of all kinds of devices, by their names in victron-ble."""

STATES = ("charge_state", "device_state", "charger_error", "alarm", "ac_in_state", "output_state")
"""Values that are words."""

YIELD = {"SolarChargerData": "Wh", "MultiRSData": "kWh"}
"""Units of today's yield, which differ between devices."""


class Victron:
    """Decodes a device's readouts with its key."""

    def __init__(self, library: Any, key: bytes | None) -> None:
        self._library = library
        self._key = key

    def decode(self, advertisement: Advertisement) -> Decoded | None:
        """Return the values; None for another kind. Raises UndecodableError without the key."""
        data = advertisement.manufacturer_data.get(MAKER, b"")
        if data[:1] != READOUT or len(data) < LEAST:
            return None
        device = self._library.detect_device_type(data)
        if device is None:
            return None
        if self._key is None or data[KEY_CHECK] != self._key[0]:
            raise UndecodableError("undecrypted")
        try:
            readout = device(self._key.hex()).parse(data)
        except (ArithmeticError, LookupError, TypeError, ValueError):
            raise UndecodableError(MALFORMED) from None
        return [*_values(readout), DecodedValue(STRENGTH, advertisement.rssi, "dBm")]


def _values(readout: Any) -> Iterator[DecodedValue]:
    for name, value in _named(readout):
        if name in SERIES and isinstance(value, int | float):
            quantity, unit, instance = SERIES[name]
            yield DecodedValue(quantity, value, unit, instance)
        elif name in STATES and isinstance(value, Enum):
            yield DecodedValue(name, value.name.lower())
        elif name == "yield_today" and isinstance(value, int | float):
            yield DecodedValue("energy", value, YIELD.get(type(readout).__name__), "today")


def _named(readout: Any) -> Iterator[tuple[str, object]]:
    """Yield what the readout's `get_` functions return, by their names."""
    for name in dir(readout):
        if name.startswith("get_") and name != "get_model_name":
            yield name.removeprefix("get_"), getattr(readout, name)()

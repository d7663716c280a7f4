"""The topics and names of programs whose messages are taken without more configuration."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Preset:
    """Topic patterns, and a map as the configuration would give it."""

    topics: tuple[str, ...]
    map: dict[str, Any] = field(default_factory=dict)


def _of(quantity: str, unit: str) -> dict[str, str]:
    return {"quantity": quantity, "unit": unit}


PRESETS = {
    "zigbee2mqtt": Preset(
        ("zigbee2mqtt/{node}",),
        {
            "temperature": _of("temperature", "°C"),
            "device_temperature": _of("device_temperature", "°C"),
            "pressure": _of("pressure", "hPa"),
            "battery": _of("battery", "%"),
            "soil_moisture": _of("moisture", "%"),
            "power": _of("power", "W"),
            "current": _of("current", "A"),
            "energy": _of("energy", "kWh"),
            "illuminance_lux": _of("illuminance", "lx"),
            "contact": {"quantity": "opening", "invert": True},
            "linkquality": "link_quality",
            "update_available": False,
            "last_seen": False,
        },
    ),
    "tasmota": Preset(
        ("tele/{node}/SENSOR",),
        {
            "ENERGY.TotalStartTime": False,
            "ENERGY.Total": _of("energy", "kWh"),
            "ENERGY.Today": False,
            "ENERGY.Yesterday": False,
            "ENERGY.Power": _of("power", "W"),
            "ENERGY.Voltage": _of("voltage", "V"),
            "ENERGY.Current": _of("current", "A"),
            "ENERGY.Frequency": _of("frequency", "Hz"),
            "ENERGY.Factor": {"quantity": "power_factor", "scale": 100, "unit": "%"},
            "ENERGY.ApparentPower": _of("apparent_power", "VA"),
            "ENERGY.ReactivePower": _of("reactive_power", "var"),
        },
    ),
    "shelly": Preset(
        (
            "shellies/{node}/sensor/{quantity}",
            "shellies/{node}/relay/+/{quantity}",
            "{node}/status/+",
        ),
        {
            "tC": _of("temperature", "°C"),
            "tF": False,
            "temperature": _of("temperature", "°C"),
            "rh": _of("humidity", "%"),
            "battery": _of("battery", "%"),
            "battery.V": _of("voltage", "V"),
            "battery.percent": _of("battery", "%"),
            "power": _of("power", "W"),
            "apower": _of("power", "W"),
            "voltage": _of("voltage", "V"),
            "current": _of("current", "A"),
            "freq": _of("frequency", "Hz"),
            "aenergy.total": _of("energy", "Wh"),
            "aenergy.minute_ts": False,
            "minute_ts": False,
            "energy": {"quantity": "energy", "unit": "kWh", "scale": 1 / 60_000},
            "source": False,
        },
    ),
}
"""Shelly's first generation counts watt-minutes. What zigbee2mqtt calls `voltage` is in volts for
plugs and in millivolts for batteries, so that no unit stands here."""

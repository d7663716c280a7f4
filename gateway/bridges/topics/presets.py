"""The topics and names of programs whose messages are taken without more configuration."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Preset:
    """Topic patterns, and a map as the configuration would give it."""

    topics: tuple[str, ...]
    map: dict[str, Any] = field(default_factory=dict)


PRESETS = {
    "zigbee2mqtt": Preset(
        ("zigbee2mqtt/{node}",),
        {
            "contact": {"quantity": "opening", "invert": True},
            "linkquality": "link_quality",
            "update_available": False,
            "last_seen": False,
        },
    ),
    "tasmota": Preset(
        ("tele/{node}/SENSOR",),
        {
            "TempUnit": False,
            "PressureUnit": False,
            "SpeedUnit": False,
            "ENERGY.TotalStartTime": False,
            "ENERGY.Total": {"quantity": "energy", "unit": "kWh"},
            "ENERGY.Today": False,
            "ENERGY.Yesterday": False,
            "ENERGY.Factor": {"quantity": "power_factor", "scale": 100},
            "ENERGY.ApparentPower": "apparent_power",
            "ENERGY.ReactivePower": "reactive_power",
        },
    ),
    "shelly": Preset(
        (
            "shellies/{node}/sensor/{quantity}",
            "shellies/{node}/relay/+/{quantity}",
            "{node}/status/+",
        ),
        {
            "tC": "temperature",
            "tF": False,
            "rh": "humidity",
            "apower": "power",
            "aenergy.total": {"quantity": "energy", "unit": "Wh"},
            "aenergy.minute_ts": False,
            "minute_ts": False,
            "energy": {"quantity": "energy", "unit": "kWh", "scale": 1 / 60_000},
            "source": False,
        },
    ),
}
"""Shelly's first generation counts watt-minutes."""

"""What Home Assistant is told of a node: one device with a component for each quantity.

https://www.home-assistant.io/integrations/mqtt/#device-discovery-payload
"""

import hashlib
import json
import re
from dataclasses import dataclass, field
from typing import Any

from gateway.bridges.readings.registry import base_quantity, instance_of
from gateway.version import VERSION

UNSAFE = re.compile(r"[^A-Za-z0-9_-]")

QUANTITIES_MAX = 64
"""Components of one device; further series are not announced."""


def slug(name: str) -> str:
    """Return a name of letters, digits, `_` and `-`; different names give different ones."""
    safe = UNSAFE.sub("_", name)
    return safe if safe == name else f"{safe}_{hashlib.sha1(name.encode()).hexdigest()[:8]}"  # noqa: S324 - tells names apart


@dataclass(slots=True)
class Announced:
    """A node, and what is known of each of its quantities."""

    node: str
    components: dict[str, dict[str, Any]] = field(default_factory=dict)

    def learn(self, identity: str, series: str, value: object, unit: str | None) -> bool:
        """Take a reading; return whether the device is to be announced anew."""
        component = component_of(identity, self.node, series, value, unit)
        if self.components.get(slug(series)) == component:
            return False
        if len(self.components) >= QUANTITIES_MAX and slug(series) not in self.components:
            return False
        self.components[slug(series)] = component
        return True

    def payload(self, identity: str, availability: str) -> bytes:
        """Return the discovery payload."""
        device = {
            "device": {"identifiers": [identity], "name": self.node, "manufacturer": "Tidegate"},
            "origin": {"name": "tidegate", "sw_version": VERSION},
            "components": self.components,
            "availability": [{"topic": availability}],
            "qos": 1,
        }
        return json.dumps(device, ensure_ascii=False, separators=(",", ":")).encode()


def component_of(
    identity: str, node: str, series: str, value: object, unit: str | None
) -> dict[str, Any]:
    """Return the component of a series, with a device class only where the unit allows it.

    `series` is the quantity, and behind `/` the instance if there is one.
    """
    quantity, _, instance = series.partition("/")
    component: dict[str, Any] = {
        "platform": "sensor",
        "unique_id": f"{identity}_{slug(series)}",
        "name": f"{quantity.replace('_', ' ').capitalize()} {instance}".rstrip(),
        "state_topic": f"sensors/{node}/{series}",
        "value_template": "{{ value_json.value }}",
    }
    if isinstance(value, bool):
        component["platform"] = "binary_sensor"
        component["payload_on"], component["payload_off"] = "True", "False"  # as templates write it
        known = instance_of(quantity)  # what is true of a `door_lock` is not whether a door is open
        if known is not None and known.binary:
            component["device_class"] = known.device_class
        return component
    if unit is not None:
        component["unit_of_measurement"] = unit
    if isinstance(value, str):
        component.pop("unit_of_measurement", None)
        return component
    component["state_class"] = "measurement"
    known = base_quantity(quantity)
    if known is not None and not known.binary and _unit_fits(known.units, unit):
        component["state_class"] = known.state_class
        if known.device_class:
            component["device_class"] = known.device_class
    return component


def _unit_fits(units: tuple[str, ...], unit: str | None) -> bool:
    return unit in units if units else unit is None

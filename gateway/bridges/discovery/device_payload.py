"""What Home Assistant is told of a node: one device with a component for each series.

https://www.home-assistant.io/integrations/mqtt/#device-discovery-payload
"""

import hashlib
import json
import re
from dataclasses import dataclass, field
from typing import Any

from gateway.bridges.readings.reading import Value
from gateway.bridges.readings.registry import Kind, base_quantity, instance_of
from gateway.bridges.supervision.control import Control
from gateway.version import VERSION

UNSAFE = re.compile(r"[^A-Za-z0-9_-]")

SERIES_MAX = 128
"""Components of one device; further series are not announced."""

STRANGER = "not listed"
"""The model of a device that was heard in the air and that nobody has listed."""


def slug(name: str) -> str:
    """Return a name of letters, digits, `_` and `-`; different names give different ones."""
    safe = UNSAFE.sub("_", name)
    return safe if safe == name else f"{safe}_{hashlib.sha1(name.encode()).hexdigest()[:8]}"  # noqa: S324 - tells names apart


def state_topic(identity: str, series: str) -> str:
    """Return where Home Assistant finds the values of a series, those that are new alone."""
    return f"tidegate/state/{identity}/{slug(series)}"


@dataclass(slots=True)
class Announced:
    """A node, and what is known of each of its series."""

    node: str
    components: dict[str, dict[str, Any]] = field(default_factory=dict)
    stranger: bool = False

    def learn(self, series: str, component: dict[str, Any]) -> bool:
        """Take what a series is; return whether the device is to be announced anew."""
        place = slug(series)
        known = self.components.get(place)
        if known is None and len(self.components) >= SERIES_MAX:
            return False
        if known is not None:  # what it has learned of the series' gaps and events stays
            component = {**{key: known[key] for key in LEARNED & known.keys()}, **component}
            if "event_types" in known and "event_types" in component:
                types = {*known["event_types"], *component["event_types"]}
                component["event_types"] = sorted(types)
        self.components[place] = component
        return component != known

    def expire(self, series: str, seconds: int) -> bool:
        """Take after how long a value is none any more; return whether that is announced anew."""
        component = self.components.get(slug(series))
        if component is None or component["platform"] != "sensor":
            return False
        if component.get("expire_after", 0) >= seconds:
            return False
        component["expire_after"] = seconds
        return True

    def payload(self, identity: str, availability: str) -> bytes:
        """Return the discovery payload."""
        about = {"identifiers": [identity], "name": self.node, "manufacturer": "Tidegate"}
        if self.stranger:
            about["model"] = STRANGER
        device = {
            "device": about,
            "origin": {"name": "tidegate", "sw_version": VERSION},
            "components": self.components,
            "availability": [{"topic": availability}],
            "qos": 1,
        }
        return json.dumps(device, ensure_ascii=False, separators=(",", ":")).encode()


LEARNED = {"expire_after"}


def kind_of(quantity: str, value: object) -> Kind:
    """Return what the values of a quantity are, of which this is one."""
    known = base_quantity(quantity)
    if isinstance(value, bool):
        return Kind.STATE
    if isinstance(value, str):
        return Kind.EVENT if known is not None and known.kind is Kind.EVENT else Kind.STATE
    return Kind.SAMPLE if known is None or known.kind in TEXTS else known.kind


TEXTS = (Kind.STATE, Kind.EVENT)
"""Kinds whose values are no numbers; a number under such a name is a sample."""


def component_of(
    identity: str,
    node: str,
    series: str,
    value: object,
    unit: str | None,
    control: Control | None = None,
) -> dict[str, Any]:
    """Return the component of a series, with a device class only where the unit allows it.

    `series` is the quantity, and behind `/` the instance if there is one. One that can be written
    is its `control`; a button has no value.
    """
    quantity, _, instance = series.partition("/")
    component: dict[str, Any] = {
        "platform": "sensor",
        "unique_id": f"{identity}_{slug(series)}",
        "name": f"{quantity.replace('_', ' ').capitalize()} {instance}".rstrip(),
    }
    if control is not None:
        return component | _writable(identity, node, series, control)
    component["state_topic"] = state_topic(identity, series)
    if kind_of(quantity, value) is Kind.EVENT:
        return component | _event(quantity, value)
    component["value_template"] = "{{ value_json.value }}"
    if isinstance(value, bool):
        component |= {"platform": "binary_sensor", **ON_AND_OFF}
        known = instance_of(quantity)  # what is true of a `door_lock` is not whether a door is open
        if known is not None and known.binary:
            component["device_class"] = known.device_class
        return component
    if isinstance(value, str):
        return component
    return component | _measured(quantity, unit)


ON_AND_OFF = {"payload_on": "True", "payload_off": "False"}
"""As templates write them."""


def _measured(quantity: str, unit: str | None) -> dict[str, Any]:
    component: dict[str, Any] = {} if unit is None else {"unit_of_measurement": unit}
    component["state_class"] = "measurement"
    known = base_quantity(quantity)
    if known is not None and known.state_class and _unit_fits(known.units, unit):
        component["state_class"] = known.state_class
        if known.device_class:
            component["device_class"] = known.device_class
    return component


def _event(quantity: str, value: object) -> dict[str, Any]:
    component: dict[str, Any] = {"platform": "event", "event_types": [str(value)]}
    if quantity == "button":
        component["device_class"] = "button"
    return component


def _writable(identity: str, node: str, series: str, control: Control) -> dict[str, Any]:
    component: dict[str, Any] = {
        "platform": control.platform,
        "command_topic": f"sensors/{node}/{series}/set",
    }
    if control.platform == "button":
        return component | {"payload_press": "press"}
    component["state_topic"] = state_topic(identity, series)
    component["value_template"] = "{{ value_json.value }}"
    if control.platform == "switch":
        states = {"state_on": "True", "state_off": "False"}
        return component | states | {"payload_on": "on", "payload_off": "off"}
    if control.platform == "select":
        return component | {"options": list(control.options)}
    component |= {"min": control.minimum, "max": control.maximum, "step": control.step}
    if control.unit is not None:
        component["unit_of_measurement"] = control.unit
    return component | {"mode": "box"}


def event_payload(value: Value) -> bytes:
    """Return what says to Home Assistant that something happened."""
    return json.dumps({"event_type": str(value)}, ensure_ascii=False).encode()


def _unit_fits(units: tuple[str, ...], unit: str | None) -> bool:
    return unit in units if units else unit is None

"""A node's payload for Home Assistant: one device with a component for each series.

https://www.home-assistant.io/integrations/mqtt/#device-discovery-payload
"""

import hashlib
import json
import re
from dataclasses import dataclass, field
from typing import Any

from gateway.bridges.readings.reading import Value
from gateway.bridges.readings.registry import Kind, base_quantity, instance_of, last_quantity
from gateway.bridges.supervision.control import Control
from gateway.version import VERSION

UNSAFE = re.compile(r"[^A-Za-z0-9_-]")

SERIES_MAX = 128
"""Components of one device; further series are not announced."""

STRANGER = "not listed"
"""The model of a device that was received by radio and is not configured."""


def slug(name: str) -> str:
    """Return a name of letters, digits, `_` and `-`; different names yield different ones."""
    safe = UNSAFE.sub("_", name)
    return safe if safe == name else f"{safe}_{hashlib.sha1(name.encode()).hexdigest()[:8]}"  # noqa: S324 - tells names apart


def state_topic(identity: str, series: str) -> str:
    """Return the topic of a series' values for Home Assistant; only new values go there."""
    return f"tidegate/state/{identity}/{slug(series)}"


@dataclass(slots=True)
class Announced:
    """A node with its known series."""

    node: str
    components: dict[str, dict[str, Any]] = field(default_factory=dict)
    stranger: bool = False

    def learn(self, series: str, component: dict[str, Any]) -> bool:
        """Add or change a series; return whether the device has to be announced again."""
        place = slug(series)
        known = self.components.get(place)
        if known is None and len(self.components) >= SERIES_MAX:
            return False
        if known is not None:  # the gaps and events that were learned stay
            component = {**{key: known[key] for key in LEARNED & known.keys()}, **component}
            if "event_types" in known and "event_types" in component:
                types = {*known["event_types"], *component["event_types"]}
                component["event_types"] = sorted(types)
        self.components[place] = component
        return component != known

    def expire(self, series: str, seconds: int) -> bool:
        """Set when a value expires; return whether that has to be announced."""
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
    """Return the kind of a quantity's values, judged by this one."""
    known = base_quantity(quantity)
    if isinstance(value, bool):
        return Kind.STATE
    if isinstance(value, str):
        return Kind.EVENT if known is not None and known.kind is Kind.EVENT else Kind.STATE
    return Kind.SAMPLE if known is None or known.kind in TEXTS else known.kind


TEXTS = (Kind.STATE, Kind.EVENT)
"""Kinds whose values are not numbers; a number under such a name is a sample."""


def component_of(
    identity: str,
    node: str,
    series: str,
    value: object,
    unit: str | None,
    control: Control | None = None,
) -> dict[str, Any]:
    """Return the component of a series, with a device class only where the unit allows it.

    `series` is the quantity, and after `/` the instance if there is one. A writable series has a
    `control`; a button has no value.
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
        # the state of a `door_lock` does not say whether a door is open
        known = instance_of(quantity)
        if known is not None and known.binary:
            component["device_class"] = known.device_class
        return component
    if isinstance(value, str):
        return component
    return component | _measured(quantity, unit)


ON_AND_OFF = {"payload_on": "True", "payload_off": "False"}
"""Numbers as templates write them."""


GASES = ("nitrogen_dioxide", "nitrogen_monoxide", "nitrous_oxide", "ozone", "sulphur_dioxide")

RECENT_UNITS = {
    ("current", "μA"),
    ("frequency", "mHz"),
    ("nitrous_oxide", "ppb"),
    ("weight", "t"),
    *((gas, unit) for gas in GASES for unit in ("mg/m³", "ppm")),
}
"""Units of a class that Home Assistant 2026.2 does not know: it refuses the whole component.

Without the class every version takes it."""


def _measured(quantity: str, unit: str | None) -> dict[str, Any]:
    component: dict[str, Any] = {} if unit is None else {"unit_of_measurement": unit}
    component["state_class"] = "measurement"
    both = base_quantity(quantity), last_quantity(quantity)
    known = next((each for each in both if each and _unit_fits(each.units, unit)), None)
    if known is not None and known.state_class:
        component["state_class"] = known.state_class
        if known.device_class and (known.name, unit) not in RECENT_UNITS:
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
    """Return the payload that reports an event to Home Assistant."""
    return json.dumps({"event_type": str(value)}, ensure_ascii=False).encode()


def _unit_fits(units: tuple[str, ...], unit: str | None) -> bool:
    return unit in units if units else unit is None

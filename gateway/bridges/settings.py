"""The keys that the tables of all bridges have; those of a kind are declared in the same way."""

import re
from dataclasses import dataclass

from gateway.bridges.readings.reading import INSTANCES_RESERVED, NAME_MAX
from gateway.bridges.readings.reading_map import NO_MAP, ReadingMap, reading_map
from gateway.bridges.readings.registry import quantity_name
from gateway.settings.checks import boolean, number
from gateway.settings.declaration import key, tables

__all__ = ["LISTED", "BridgeSettings", "bridge_name", "instance", "key", "quantity", "tables"]

BRIDGE_NAME = re.compile(r"[^/+#\x00-\x1f\x7f]{1,64}")


def bridge_name(value: object) -> str:
    """Accept a name that can stand in a topic."""
    if not isinstance(value, str) or not BRIDGE_NAME.fullmatch(value):
        raise ValueError("1 to 64 characters without /, + and #")
    return value


def quantity(value: object) -> str:
    """Accept a quantity; return the registry's name, under which its readings are published."""
    return quantity_name(bridge_name(value))


def instance(value: object) -> str:
    """Accept a name that tells several of one quantity apart (docs/use/readings.md)."""
    name = bridge_name(value)
    if name in INSTANCES_RESERVED or len(name.encode()) > NAME_MAX:
        raise ValueError(
            f"1 to {NAME_MAX} bytes without /, + and #, and not {' or '.join(INSTANCES_RESERVED)}"
        )
    return name


LISTED = "your own nodes, such as `Acurite-*`, if the program receives everybody's devices"
"""The meaning of the key `listed`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BridgeSettings:
    """The keys that every kind of bridge has."""

    name: str | None = key(bridge_name, "name in figures, alarms and the log", None)
    retain: bool = key(boolean, "retain readings, for dashboards that start later", default=False)
    silence: float = key(
        number(0, 1_000_000),
        "times its usual interval that the bridge may be silent before it is restarted and "
        "the alarm is raised; 0: no limit",
        10.0,
    )
    map: ReadingMap = key(
        reading_map,
        "[meanings of names](#names-of-values), beside the known ones",
        NO_MAP,
        shown="-",
    )

"""The topics that a screen hears and the one it writes to."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Topics:
    """A gateway's topics; another broker, which keeps `$` for itself, needs others in a test."""

    root: str = "$SYS"
    """the gateway's figures are below `<root>/broker/` (docs/sys-topics.md)"""
    sensors: str = "sensors/#"
    """the topic filter of what is shown as sensors"""
    uplink_order: str = "$CONTROL/tidegate/uplink"
    """takes `pause` and `resume` for all uplinks; below it are topics for each by its name"""


GATEWAY = Topics()

"""What the nodes of a line say of themselves: figures of the port, and an alarm for safe mode."""

import logging
from collections.abc import Callable, Iterable

from gateway.bridges.readings.reading import Reading
from gateway.counters import Counters

NODES_MAX = 64
"""Nodes of one port whose figures are shown; those of further ones are not."""

DROPPED = "dropped"
"""Stands in every frame; the others are quantities of heartbeats."""

HEARTBEAT = ("suppressed", "sensor_failures", "failed_starts", "safe_mode")
SAFE_MODE = HEARTBEAT[-1]

logger = logging.getLogger(__name__)


class NodeFigures:
    """Adds up what the nodes said since their starts, as gauges; raises their alarms."""

    def __init__(
        self, port_name: str, counters: Counters, alarm: Callable[[str, str], None]
    ) -> None:
        self._port_name = port_name
        self._counters = counters
        self._alarm = alarm
        self._boots: dict[str, int] = {}
        self._values: dict[str, dict[str, int]] = {name: {} for name in (DROPPED, *HEARTBEAT)}

    def close(self) -> None:
        """End the alarms."""
        for node, safe in self._values[SAFE_MODE].items():
            if safe:
                self._alarm(f"node-{node}", "")

    def note_dropped(self, node: str, boot: int, dropped: int) -> None:
        """Take what a frame says; after a new boot id the node counts from zero."""
        if node not in self._boots and len(self._boots) == NODES_MAX:
            return
        if self._boots.get(node) != boot:
            self._boots[node] = boot
            for name in HEARTBEAT:
                self._set(name, node, 0)
        self._set(DROPPED, node, dropped)

    def note(self, readings: Iterable[Reading]) -> None:
        """Take what stands in a heartbeat of a node that was noted before."""
        for each in readings:
            known = each.quantity in HEARTBEAT and each.node in self._boots
            if known and isinstance(each.value, int):
                self._set(each.quantity, each.node, int(each.value))

    def _set(self, name: str, node: str, value: int) -> None:
        values = self._values[name]
        before = values.get(node, 0)
        values[node] = value
        self._counters.set(f"tidegate/serial/{self._port_name}/{name}", sum(values.values()))
        if name == SAFE_MODE and value != before:
            self._tell(node, safe=bool(value))

    def _tell(self, node: str, *, safe: bool) -> None:
        text = "failed several times in a row, and runs without its sensors" if safe else ""
        if safe:
            logger.warning("serial %s: node %s %s", self._port_name, node, text)
        else:
            logger.info("serial %s: node %s has left its safe mode", self._port_name, node)
        self._alarm(f"node-{node}", text)

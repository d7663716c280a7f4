"""The nodes of a line: their figures and the alarm for safe mode, and two of one name."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field

from gateway.bridges.readings.reading import Reading
from gateway.bridges.supervision.host import Host

NODES_MAX = 64
"""Nodes of one port that are watched and whose figures are shown; further ones are not."""

DROPPED = "dropped"
"""Stands in every frame; the others are quantities of heartbeats."""

STARTS_MAX = 16
"""Starts of one name that are known; the one that began first is forgotten beyond it."""

SILENT_SECONDS = 60.0
"""After which a start is over, if it was not heard."""

HEARTBEAT = ("suppressed", "sensor_failures", "failed_starts", "safe_mode")
SAFE_MODE = HEARTBEAT[-1]

logger = logging.getLogger(__name__)


class NodeFigures:
    """Adds up what the nodes said since their starts, as gauges; raises their alarms."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._boots: dict[str, int] = {}
        self._values: dict[str, dict[str, int]] = {name: {} for name in (DROPPED, *HEARTBEAT)}
        host.at_end(self.close)

    def close(self) -> None:
        """End the alarms."""
        for node, safe in self._values[SAFE_MODE].items():
            if safe:
                self._host.services.alarm(f"node-{node}", "")

    def note_dropped(self, node: str, boot: int, dropped: int) -> None:
        """Take what a frame says; after a new boot id the node counts from zero."""
        if node not in self._boots and len(self._boots) == NODES_MAX:
            return
        if self._boots.get(node) != boot:
            self._boots[node] = boot
            for name in HEARTBEAT:
                self._set(name, node, 0)
        if self._values[DROPPED].get(node) != dropped:
            self._set(DROPPED, node, dropped)

    def note(self, readings: Iterable[Reading]) -> None:
        """Take what stands in a heartbeat of a node that was noted before."""
        for each in readings:
            known = each.quantity in HEARTBEAT and each.node in self._boots
            if known and isinstance(each.value, int):
                self._set(each.quantity, each.node, int(each.value))

    def _set(self, name: str, node: str, value: int) -> None:
        values = self._values[name]
        before = values.get(node)
        values[node] = value
        self._host.show(name, sum(values.values()))
        if name == SAFE_MODE and value != (before or 0):
            self._report_safe_mode(node, safe=bool(value))

    def _report_safe_mode(self, node: str, *, safe: bool) -> None:
        text = "failed several times in a row, and runs without its sensors" if safe else ""
        if safe:
            logger.warning("%s: node %s %s", self._host.title, node, text)
        else:
            logger.info("%s: node %s has left its safe mode", self._host.title, node)
        self._host.services.alarm(f"node-{node}", text)


@dataclass(slots=True)
class Starts:
    """The starts of one name, in the order in which they began, with when each was heard."""

    heard: dict[int, float] = field(default_factory=dict)
    apart: dict[int, str] = field(default_factory=dict)
    """The instances of the starts beside the first one."""
    several: bool = False


class NodeStarts:
    """A start that is heard again after a later one has begun is another node's of the same name.

    As long as both are heard the later one has its boot id as an instance: a frame says nothing
    else of the board. A start without another beside it is a node that was started again.
    """

    def __init__(self) -> None:
        self._nodes: dict[str, Starts] = {}

    def instance(self, node: str, boot: int, now: float) -> str:
        """Return what tells the start from others of its name; empty for one that is alone."""
        starts = self._nodes.get(node)
        if starts is None:
            if len(self._nodes) == NODES_MAX:
                return ""
            starts = self._nodes[node] = Starts()
        for each, heard_at in list(starts.heard.items()):
            if now - heard_at > SILENT_SECONDS:
                del starts.heard[each]
                starts.apart.pop(each, None)
        if len(starts.heard) < 2:
            starts.several = False
        latest = next(reversed(starts.heard), boot)
        starts.several |= boot in starts.heard and boot != latest
        starts.heard[boot] = now
        if len(starts.heard) > STARTS_MAX:
            starts.apart.pop(next(iter(starts.heard)), None)
            del starts.heard[next(iter(starts.heard))]
        if starts.several:
            for each in list(starts.heard)[1:]:
                starts.apart.setdefault(each, f"{each:08x}")
        return starts.apart.get(boot, "")

"""Tells two nodes of one name on one line apart, by their starts."""

from dataclasses import dataclass, field

NODES_MAX = 64
"""Nodes of one line that are watched."""

STARTS_MAX = 16
"""Starts of one name that are told apart; the one that began first is forgotten beyond it."""

SILENT_SECONDS = 60.0
"""After which a start is over, if it was not heard."""


@dataclass(slots=True)
class Starts:
    """The starts of one name, the one that began first at the front, with when each was heard."""

    heard: dict[int, float] = field(default_factory=dict)
    apart: dict[int, str] = field(default_factory=dict)
    """What starts are called beside the first one."""
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
        for each in [each for each, at in starts.heard.items() if now - at > SILENT_SECONDS]:
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

"""The table of figures in docs/operate/sys-topics.md."""

import re
from pathlib import Path

from gateway.bridges.kind import BridgeKind
from gateway.config.bridges import bridge_kinds, load_kind
from gateway.telemetry.bridge_metrics import kind_figures

PAGE = Path(__file__).parents[3] / "docs/operate/sys-topics.md"


def documented() -> set[str]:
    """Return the names below $SYS/broker/ in the first column of docs/operate/sys-topics.md."""
    text = PAGE.read_text(encoding="utf-8")
    known, _, own = text.partition("Our own, below `$SYS/broker/tidegate/`:")
    return {
        prefix + name
        for part, prefix in ((known, ""), (own, "tidegate/"))
        for row in part.splitlines()
        if row.startswith("| `")
        for name in re.findall(r"`([^`]+)`", row.split("|")[1])
    }


def declared() -> set[str]:
    """Return the names of the figures that the shipped kinds of bridges declare."""
    kinds = [load_kind(entry_point) for entry_point in bridge_kinds().values()]
    return {
        figure.name
        for kind in kinds
        if isinstance(kind, BridgeKind)
        for figure in kind_figures(kind.name, kind.counters, kind.gauges)
    }

"""The table of figures in docs/operate/sys-topics.md."""

import re
from collections.abc import Iterator
from pathlib import Path

from gateway.bridges.kind import BridgeKind
from gateway.cli.docs import expand_names
from gateway.config.bridges import bridge_kinds, load_kind
from gateway.telemetry.bridge_metrics import kind_figures

PAGE = Path(__file__).parents[3] / "docs/operate/sys-topics.md"
OWN = "tidegate/"


def documented() -> set[str]:
    """Return the names below $SYS/broker/ in the first column of docs/operate/sys-topics.md.

    Those of the section "Uplinks" each of several uplinks has, too.
    """
    text = PAGE.read_text(encoding="utf-8")
    known, _, own = text.partition(f"All further names are below `$SYS/broker/{OWN}`.")
    uplinks = own.partition("\n## Uplinks\n")[2].partition("\n## ")[0]
    return {
        *_names(known),
        *(OWN + name for name in _names(own)),
        *(OWN + name.replace("uplink/", "uplink/<uplink>/", 1) for name in _names(uplinks)),
    }


def _names(text: str) -> Iterator[str]:
    for row in text.splitlines():
        if row.startswith("| `"):
            yield from re.findall(r"`([^`]+)`", expand_names(row.split("|")[1]))


def declared() -> set[str]:
    """Return the names of the figures that the shipped kinds of bridges declare."""
    kinds = [load_kind(entry_point) for entry_point in bridge_kinds().values()]
    return {
        figure.name
        for kind in kinds
        if isinstance(kind, BridgeKind)
        for figure in kind_figures(kind.name, kind.counters, kind.gauges)
    }

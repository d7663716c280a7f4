"""The figures of bridges: common ones, and those that a kind declares."""

from collections.abc import Mapping

from gateway.telemetry.figure import Figure, Kind, own

STATES = ("open", "waiting", "silent", "off")

EVERY_KIND = {
    "readings": "Readings published.",
    "rejected": "Readings refused for ever.",
    "lost": "Readings that were sent once and could not be stored.",
    "marked": "Readings published with a quality because they cannot be right.",
    "node_conflicts": "Readings of a second source of a series.",
    "clock_errors": "Readings whose time cannot be right and was replaced.",
}
"""Counters of each kind."""

BRIDGE = (
    Figure("tidegate/bridges/readings", Kind.COUNTER, "Readings that bridges published."),
    Figure(
        "tidegate/<kind>/<bridge>/state",
        Kind.GAUGE,
        "1 for the state of the bridge.",
        "tidegate_bridge_state",
        STATES,
    ),
    Figure(
        "tidegate/<kind>/<bridge>/restarts",
        Kind.COUNTER,
        "Starts after a fault or a silence.",
        "tidegate_bridge_restarts_total",
    ),
    Figure(
        "tidegate/<kind>/<bridge>/readings",
        Kind.COUNTER,
        "Readings that the bridge published.",
        "tidegate_bridge_readings_total",
    ),
)
"""Figures of each bridge."""


def kind_figures(
    kind: str, counters: Mapping[str, str], gauges: Mapping[str, str]
) -> tuple[Figure, ...]:
    """Return the figures of a kind: counters of all its bridges, gauges of each."""
    return (
        *own(kind, Kind.COUNTER, {**EVERY_KIND, **counters}),
        *(
            Figure(f"tidegate/{kind}/<bridge>/{name}", Kind.GAUGE, text)
            for name, text in gauges.items()
        ),
    )

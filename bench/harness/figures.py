"""The figures that are measured: how they are named and written."""

from typing import Any, NamedTuple

Figures = dict[str, float]
"""Names of METRICS and of CHECKS, and their values in one round."""


class Metric(NamedTuple):
    """How a figure is written."""

    title: str
    form: str


METRICS = {
    "cpu_us": Metric("CPU, µs a message", "{:.2f}"),
    "messages_s": Metric("messages/s", "{:,.0f}"),
    "delivered_us": Metric("CPU, µs a delivery", "{:.2f}"),
    "published_us": Metric("CPU, µs a published message", "{:.2f}"),
    "drained_us": Metric("CPU, µs a drained message", "{:.2f}"),
    "cycle_us": Metric("CPU, µs a cycle", "{:.1f}"),
    "mb_us": Metric("CPU, µs a MB", "{:.0f}"),
    "where_1": Metric("with 1 `$where`, of itself without", "{:.2f}"),
    "where_10": Metric("with 10", "{:.2f}"),
    "where_100": Metric("with 100", "{:.2f}"),
    "access_times": Metric("the same, of itself without the rules", "{:.2f}"),
    "uplink_times": Metric("the same, of itself without the rule", "{:.2f}"),
    "written": Metric("bytes written a published message", "{:,.0f}"),
    "user": Metric("share in user code", "{:.0%}"),
    "busy": Metric("share of the core", "{:.0%}"),
    "generator_busy": Metric("generator's share of its core", "{:.0%}"),
    "p50_us": Metric("p50, µs", "{:,.0f}"),
    "p99_us": Metric("p99, µs", "{:,.0f}"),
    "p999_us": Metric("p99.9, µs", "{:,.0f}"),
    "set_s": Metric("set/s", "{:,.0f}"),
    "set_cpu_us": Metric("set, CPU µs", "{:.2f}"),
    "replay_s": Metric("replayed/s", "{:,.0f}"),
    "replay_cpu_us": Metric("replayed, CPU µs", "{:.2f}"),
    "connects_s": Metric("connects/s", "{:,.0f}"),
    "connect_cpu_us": Metric("connect, CPU µs", "{:.1f}"),
    "start_mib": Metric("MiB after the start", "{:.1f}"),
    "idle_mib": Metric("MiB for 10,000 connections", "{:.1f}"),
    "idle_cpu": Metric("share of the core, idle", "{:.2%}"),
    "subscription_bytes": Metric("bytes a subscription", "{:,.0f}"),
    "subscribes_s": Metric("subscribes/s", "{:,.0f}"),
    "subscribe_cpu_us": Metric("subscribe, CPU µs", "{:.2f}"),
    "enqueue_s": Metric("enqueued/s", "{:,.0f}"),
    "enqueue_cpu_us": Metric("enqueued, CPU µs", "{:.2f}"),
    "queued_bytes": Metric("bytes a queued message", "{:,.0f}"),
    "drain_s": Metric("drained/s", "{:,.0f}"),
    "restart_s": Metric("restart, s", "{:.2f}"),
}

WRONG = ("lost", "duplicates", "reordered", "misrouted", "refused")
"""What can be wrong with a message or connection."""

CHECKS = ("checked", *WRONG)
"""Messages or connections whose arrival was followed, and what was wrong with them."""


def write(name: str, value: float) -> str:
    """Return a figure as the tables have it."""
    return METRICS[name].form.format(value)


def checks(report: dict[str, Any]) -> Figures:
    """Return what the load generator says of the deliveries, each of which it looked at."""
    found = {name: report[name] for name in ("lost", "duplicates", "reordered", "misrouted")}
    return {"checked": report["expected"], **found}


def latency(report: dict[str, Any]) -> Figures:
    """Return how long messages took, which says something at a rate that leaves time."""
    return {f"{name}_us": report["latency_us"][name] for name in ("p50", "p99", "p999")}

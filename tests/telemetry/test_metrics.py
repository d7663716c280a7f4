import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from gateway.telemetry.bridge_metrics import kind_figures
from gateway.telemetry.figure import Figure, Kind
from gateway.telemetry.metrics import FIGURES, INFO, exposition
from tests.support.broker.sys_topics import documented

TEXTS = {
    "tidegate/channels/<channel>/filter",
    "tidegate/channels/<channel>/kind",
    "tidegate/channels_paused_filters",
    "version",
    *(f"tidegate/gateway/{name}" for name in ("id", "version", "epoch", "build", "commit")),
    *(f"tidegate/uplink/{name}" for name in ("destination", "error", "last_end")),
    *(f"tidegate/uplink/<uplink>/{name}" for name in ("destination", "error", "last_end")),
    *(f"tidegate/rules/<rule>/{name}" for name in ("topic", "where")),
    "tidegate/<kind>/<bridge>/error",
    "tidegate/shares/largest",
    "tidegate/turns/longest",
    *(f"tidegate/storage/{name}" for name in ("durability", "durability_classes")),
    *(f"tidegate/where/{name}" for name in ("slowest", "busiest")),
    *("tidegate/alarm/<name>", "tidegate/log", "tidegate/log/recent"),
}
"""Documented names that are no numbers."""

SERIAL = kind_figures("serial", {}, {"dropped": "Samples given up."})

Sample = tuple[str, dict[str, str], float]


def parsed(text: str) -> list[Sample]:
    """Return the samples as another program reads them."""
    return [
        (sample.name, sample.labels, sample.value)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    ]


def values_of(text: str) -> dict[str, float]:
    return {name: value for name, labels, value in parsed(text) if not labels}


def changed(text: str) -> list[Sample]:
    """Return the samples but for the counters that nothing has counted yet."""
    zeros = [sample for sample in parsed(exposition({}, SERIAL)) if sample[0] != "tidegate_info"]
    return [sample for sample in parsed(text) if sample not in zeros]


def test_every_documented_figure_that_is_a_number_can_be_scraped() -> None:
    names = {figure.name for figure in (*FIGURES, *kind_figures("<kind>", {}, {}))}
    lacking = documented() - TEXTS - names
    assert not lacking, "gateway/telemetry/*_metrics.py, or TEXTS for what is no number"
    assert not names - documented(), "docs/operate/sys-topics.md"


def test_no_two_figures_are_the_same_metric() -> None:
    metrics = Counter(figure.metric for figure in (*FIGURES, INFO))
    assert {name for name, count in metrics.items() if count > 1} == set()
    assert all(re.fullmatch(r"tidegate_[a-z0-9_]*[a-z0-9]", name) for name in metrics)


def test_numbers_and_what_looks_like_them() -> None:
    values: dict[str, int | float | str] = {
        "uptime": "61 seconds",
        "clients/connected": 2,
        "bytes/received": 123_456_789_012,
        "tidegate/aliases/in/hit_rate": 12.5,
        "tidegate/where/slowest_microseconds": "3.4",
        "tidegate/where/slowest": "payload.value > 1",
        "tidegate/not/in_the_table": 1,
    }
    assert {name: value for name, _, value in changed(exposition(values))[1:]} == {
        "tidegate_uptime_seconds": 61,
        "tidegate_clients_connected": 2,
        "tidegate_bytes_received_total": 123_456_789_012,
        "tidegate_aliases_in_hit_rate": 12.5,
        "tidegate_where_slowest_seconds": 3.4e-6,
    }


def test_what_is_not_known_is_left_out() -> None:
    values: dict[str, int | float | str] = {"tidegate/clock/uncertainty_ms": "unknown"}
    assert "uncertainty" not in exposition(values)


def test_parts_of_a_name_become_labels() -> None:
    text = exposition(
        {
            "tidegate/rules/0/evaluated": 7,
            "tidegate/rules/10/evaluated": 8,
            "tidegate/serial/ttyUSB0/dropped": 9,
            "load/bytes/sent/15min": "0.25",
        },
        SERIAL,
    )
    assert changed(text)[1:] == [
        ("tidegate_load_bytes_sent", {"minutes": "15"}, 0.25),
        ("tidegate_rule_evaluated_total", {"rule": "0"}, 7),
        ("tidegate_rule_evaluated_total", {"rule": "10"}, 8),
        ("tidegate_serial_bridge_dropped", {"bridge": "ttyUSB0"}, 9),
    ]


def test_a_state_is_one_series_for_each_word() -> None:
    text = exposition({"tidegate/uplink/state": "paused", "tidegate/serial/a/state": "open"})
    states = {
        (name, labels.get("bridge"), labels["state"]): value
        for name, labels, value in parsed(text)
        if "state" in labels
    }
    assert [where for where, value in states.items() if value] == [
        ("tidegate_uplink_state", None, "paused"),
        ("tidegate_bridge_state", "a", "open"),
    ]
    assert len(states) == 10


def test_a_channel_is_no_bridge() -> None:
    text = exposition({"tidegate/channels/jobs/state": "paused"})
    assert [
        (name, labels["channel"], labels["state"], value)
        for name, labels, value in parsed(text)
        if "jobs" in labels.values()
    ] == [
        ("tidegate_channel_state", "jobs", "open", 0),
        ("tidegate_channel_state", "jobs", "paused", 1),
    ]


def test_who_this_is_stands_in_labels() -> None:
    values = {"tidegate/gateway/id": "barn", "tidegate/gateway/version": "1.2"}
    assert changed(exposition(values)) == [
        (
            "tidegate_info",
            {"id": "barn", "version": "1.2", "epoch": "", "build": "", "commit": ""},
            1,
        )
    ]


def test_help_and_type_stand_once_before_the_samples() -> None:
    text = exposition({"tidegate/rules/0/null": 1, "tidegate/rules/1/null": 2})
    assert [line for line in text.splitlines() if "rule_null" in line] == [
        "# HELP tidegate_rule_null_total Messages for which the rule was NULL.",
        "# TYPE tidegate_rule_null_total counter",
        'tidegate_rule_null_total{rule="0"} 1',
        'tidegate_rule_null_total{rule="1"} 2',
    ]


def test_types_are_told() -> None:
    text = exposition({"bytes/sent": 1, "clients/connected": 1})
    named = {"tidegate_info", "tidegate_bytes_sent", "tidegate_clients_connected"}
    families = text_string_to_metric_families(text)
    assert {family.name: family.type for family in families if family.name in named} == {
        "tidegate_info": "gauge",
        "tidegate_bytes_sent": "counter",  # the parser takes _total off
        "tidegate_clients_connected": "gauge",
    }


PORTS = st.text(st.characters(codec="utf-8"), min_size=1)


@pytest.mark.uncovered
@given(
    st.dictionaries(PORTS, st.integers(0, 2**53)),
    st.sampled_from([figure for figure in FIGURES if not figure.varies and not figure.words]),
    st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False),
)
def test_another_program_reads_what_was_counted(
    ports: dict[str, int], figure: Figure, value: float
) -> None:
    values: dict[str, int | float | str] = {figure.name: value}
    for port, dropped in ports.items():
        values[f"tidegate/serial/{port}/dropped"] = dropped
    samples = parsed(exposition(values, SERIAL))
    assert [sample[2] for sample in samples if sample[0] == figure.metric] == [
        value / figure.divisor
    ]
    read = {labels["bridge"]: value for _, labels, value in samples if "bridge" in labels}
    assert read == ports


def test_every_counter_is_there_at_zero_from_the_start() -> None:
    values = values_of(exposition({}))
    counters = {figure.metric for figure in FIGURES if figure.kind is Kind.COUNTER}
    varying = {figure.metric for figure in FIGURES if figure.varies}
    assert len(counters - varying) > 50
    assert values == dict.fromkeys(counters - varying, 0)

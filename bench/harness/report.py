"""The tables of a comparison: medians, ratios to Mosquitto, and what was checked."""

from collections.abc import Mapping, Sequence

from bench.harness.figures import METRICS, WRONG, write
from bench.harness.markdown import table
from bench.harness.results import Key, Results
from bench.harness.scenario import Scenario
from bench.harness.selection import REFERENCE

VERSIONS = {4: "MQTT 3.1.1", 5: "MQTT 5.0"}


def report(results: Results, brokers: Sequence[str], scenarios: Mapping[str, Scenario]) -> str:
    """Return a table for each protocol version, the brokers in this order."""
    versions = [v for v in VERSIONS if any(version == v for _, version, _ in results.rounds)]
    return "\n\n".join(_of_version(results, brokers, scenarios, version) for version in versions)


def _of_version(
    results: Results, brokers: Sequence[str], scenarios: Mapping[str, Scenario], version: int
) -> str:
    rows = [
        _row(results, brokers, scenario, version, name)
        for scenario, text in scenarios.items()
        if any((scenario, version, broker) in results.rounds for broker in brokers)
        for name in text.shown
    ]
    head = [VERSIONS[version], "", *brokers, "checked"]
    return table(head, rows)


def _row(
    results: Results, brokers: Sequence[str], scenario: str, version: int, name: str
) -> list[str]:
    keys = [(scenario, version, broker) for broker in brokers]
    cells = [_cell(results, key, name) for key in keys]
    checked = sum(results.checks(key)["checked"] for key in keys)
    return [f"`{scenario}`", METRICS[name].title, *cells, f"{checked:,.0f}"]


def _cell(results: Results, key: Key, name: str) -> str:
    reference = (*key[:2], REFERENCE)
    value, base = results.median(key, name), results.median(reference, name)
    if value is None:
        return results.failures.get(key, "-")
    values = results.values(key, name)
    text = write(name, value)
    low, high = write(name, min(values)), write(name, max(values))
    if low != high:
        text += f" [{low} to {high}]"
    if key != reference and base:
        text += f" **{value / base:.3g}**"
    checks = results.checks(key)
    wrong = [f"{checks[check]:,.0f} {check}" for check in WRONG if checks[check]]
    return ", ".join([text, *wrong])

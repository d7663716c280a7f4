"""Takes a scenario's measurements round by round, the brokers in turns."""

from collections.abc import Sequence

from bench.harness.brokers import Broker
from bench.harness.errors import MeasurementError
from bench.harness.figures import write
from bench.harness.report import VERSIONS
from bench.harness.results import Key, Results
from bench.harness.scenario import Scenario, Settings

MOST_FAILURES = 2
"""After so many a broker is left out of the scenario."""


def measure_rounds(
    results: Results,
    name: str,
    scenario: Scenario,
    versions: Sequence[int],
    brokers: Sequence[Broker],
    rounds: int,
    seconds: float,
) -> None:
    """Put into the results so many rounds of a scenario, instead of those that it had."""
    turns = [
        (version, broker)
        for version in versions
        for broker in brokers
        if version in scenario.versions and (broker.own or not scenario.own)
    ]
    failures: dict[Key, int] = {}
    for version, broker in turns:
        results.forget((name, version, broker.name))
    for number in range(1, rounds + 1):
        for version, broker in turns:
            key = (name, version, broker.name)
            if failures.get(key, 0) == MOST_FAILURES:
                continue
            line = _measure(results, key, scenario, broker, Settings(version, seconds))
            failures[key] = failures.get(key, 0) + (key in results.failures)
            where = f"{name} {number}/{rounds} {VERSIONS[version]} {broker.name}"
            print(f"{where}: {line}", flush=True)


def _measure(
    results: Results, key: Key, scenario: Scenario, broker: Broker, settings: Settings
) -> str:
    """Return what to say of one measurement, which is in the results then."""
    try:
        figures = scenario.measure(broker, settings)
    except MeasurementError as error:
        results.failures[key] = str(error)
        return f"failed: {error}"
    results.add(key, figures)
    return ", ".join(f"{name} {write(name, figures[name])}" for name in scenario.shown)

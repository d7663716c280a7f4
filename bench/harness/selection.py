"""Which brokers a command line asks for."""

from collections.abc import Callable, Sequence

from bench.harness import builds
from bench.harness.brokers import Broker, byte_copier, custom, mosquitto, tidegate
from bench.harness.errors import MeasurementError

BROKERS: dict[str, Callable[[], Broker]] = {
    "mosquitto": mosquitto,
    "tidegate": lambda: tidegate("tidegate", builds.plain()),
    "compiled": lambda: tidegate("compiled", builds.compiled()),
    "copier": lambda: byte_copier(builds.generator()),
}
USUAL = "mosquitto,tidegate,compiled"
REFERENCE = "mosquitto"
"""Whose figures ratios refer to."""


def words(text: str) -> list[str]:
    """Return the words between the commas."""
    return [word for word in text.split(",") if word]


def found(names: Sequence[str], command: str | None = None) -> list[Broker]:
    """Return the brokers that can be started; `command` is another way to start Tidegate."""
    brokers = []
    for name in names:
        try:
            if name == "tidegate" and command:
                brokers.append(custom(name, command))
            else:
                brokers.append(BROKERS[name]())
        except MeasurementError as failure:
            print(f"left out: {name}: {failure}")
    return brokers

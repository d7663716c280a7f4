"""What a scenario is: a measurement with a name, and the figures of it that are shown."""

from collections.abc import Callable
from dataclasses import dataclass

from bench.harness.brokers import Broker
from bench.harness.figures import Figures


@dataclass(frozen=True)
class Settings:
    """What the command line says for every scenario."""

    version: int
    """4 for MQTT 3.1.1, 5 for MQTT 5.0."""

    seconds: float
    """How long publishers publish, where a scenario does not say otherwise."""


Measure = Callable[[Broker, Settings], Figures]
"""Starts the broker anew, measures and stops it; raises MeasurementError."""


@dataclass(frozen=True)
class Scenario:
    """One line of the description, and one line of the table for each of `shown`."""

    text: str
    measure: Measure
    shown: tuple[str, ...] = ("cpu_us",)
    versions: tuple[int, ...] = (4, 5)
    own: bool = False
    """Whether it is about what only Tidegate has."""

    big: bool = False
    """Whether it needs so much time and memory that it must be asked for."""

"""Simulated nodes: `[[simulator]]`."""

from dataclasses import dataclass

from gateway.config.checks import number, text
from gateway.config.declaration import key


@dataclass(frozen=True, slots=True)
class SimulatorConfig:
    """A simulated node, which makes a pseudo-terminal that a `[[serial]]` opens."""

    port: str = key(
        text,
        "a simulated node makes a pseudo-terminal here; a `[[serial]]` opens it",
    )
    node: str = key(
        text,
        "the node's name",
        "demo",
    )
    interval: float = key(
        number(0.01, 3600),
        "seconds between two samples",
        1.0,
    )

"""Simulated nodes: `[[simulator]]`."""

from gateway.settings.checks import text
from gateway.settings.declaration import key, settings_class
from gateway.settings.quantities import duration


@settings_class
class SimulatorSettings:
    """A simulated node behind a pseudo-terminal."""

    port: str = key(
        text,
        "path of the pseudo-terminal, which a `[[serial]]` opens",
    )
    node: str = key(
        text,
        "the node's name",
        "demo",
    )
    interval: float = key(
        duration(0.01, 3600),
        "time between two samples",
        1.0,
    )

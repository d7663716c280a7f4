"""Serial ports and simulated nodes: `[[serial]]` and `[[simulator]]`."""

from dataclasses import dataclass

from gateway.config.checks import number, one_of, text, whole_number
from gateway.config.declaration import key


@dataclass(frozen=True, slots=True)
class SerialConfig:
    """A serial port with a node behind it."""

    port: str = key(
        text,
        "path of the device; `/dev/serial/by-id/…` stays the same when it is plugged in again",
    )
    format: str = key(
        one_of("frames", "json"),
        "frames, or JSON lines ([protocol](serial-protocol.md))",
        "frames",
    )
    baud: int = key(
        whole_number(50, 4_000_000),
        "bits a second",
        115_200,
    )
    node: str | None = key(
        text,
        "node of JSON lines that name none",
        None,
        shown="the port's base name",
    )


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

"""The memory that the topic aliases we set may hold, for one connection and for all."""

from dataclasses import dataclass, field

from gateway.mqtt.aliases.alias_figures import OutboundFigures

CLIENT_BYTES = 32 * 1024
"""Bytes of one connection's topic names and the objects around them; 128 short names fit."""

SOFT_BYTES = 16 * 1024 * 1024
"""Bytes for all connections from which on none gets a further alias."""

HARD_BYTES = 32 * 1024 * 1024
"""Bytes for all connections that are never exceeded: who would, gives up all its aliases."""


@dataclass(slots=True)
class AliasBudget:
    """Three bounds in bytes, and the figures whose `bytes_held` the last two are for."""

    client_bytes: int = CLIENT_BYTES
    soft_bytes: int = SOFT_BYTES
    hard_bytes: int = HARD_BYTES
    figures: OutboundFigures = field(default_factory=OutboundFigures)

"""The memory that the topic aliases we set may hold, for one connection and for all."""

from dataclasses import dataclass, field

from gateway.mqtt.aliases.alias_figures import OutboundFigures
from gateway.settings.broker import ALIAS_CLIENT_BYTES, ALIAS_HARD_BYTES, ALIAS_SOFT_BYTES


@dataclass(slots=True)
class AliasBudget:
    """Three bounds in bytes, and the figures whose `bytes_held` the last two are for."""

    client_bytes: int = ALIAS_CLIENT_BYTES
    soft_bytes: int = ALIAS_SOFT_BYTES
    hard_bytes: int = ALIAS_HARD_BYTES
    figures: OutboundFigures = field(default_factory=OutboundFigures)

"""What the topic aliases of all connections do, counted for each direction."""

from dataclasses import dataclass, field

from gateway.settings.broker import ALIAS_CLIENT_BYTES, ALIAS_HARD_BYTES, ALIAS_SOFT_BYTES


@dataclass(slots=True)
class InboundFigures:
    """Aliases that clients set: PUBLISH packets, topic names and bytes since the start.

    `bytes_saved` is net: topic names that did not travel, less the alias properties that did.
    `bytes_held` is a gauge: the topic names that aliases stand for now.
    """

    hits: int = 0  # packets without a topic name
    mappings: int = 0  # packets that set an alias
    evictions: int = 0  # of these, for another topic name than before
    bytes_saved: int = 0
    bytes_held: int = 0

    def values(self) -> dict[str, int | float]:
        """Return each figure by its name below `tidegate/aliases/in/`."""
        return {
            "hits": self.hits,
            "mappings": self.mappings,
            "evictions": self.evictions,
            "bytes_saved": self.bytes_saved,
            "bytes_held": self.bytes_held,
            "hit_rate": percent(self.hits, self.mappings),
        }


@dataclass(slots=True)
class OutboundFigures:
    """Aliases that we set, as above; only connections that may have aliases are counted.

    `bytes_held` counts the objects around the topic names too.
    """

    hits: int = 0
    misses: int = 0  # packets with a topic name
    mappings: int = 0  # of these, those that set an alias
    evictions: int = 0  # mappings given up for another, or for memory
    refused_soft: int = 0  # topics without an alias because of the soft limit
    refused_hard: int = 0  # connections that gave up all their aliases at the hard limit
    bytes_saved: int = 0
    bytes_held: int = 0

    def values(self) -> dict[str, int | float]:
        """Return each figure by its name below `tidegate/aliases/out/`."""
        return {
            "hits": self.hits,
            "misses": self.misses,
            "mappings": self.mappings,
            "evictions": self.evictions,
            "refused_soft": self.refused_soft,
            "refused_hard": self.refused_hard,
            "bytes_saved": self.bytes_saved,
            "bytes_held": self.bytes_held,
            "hit_rate": percent(self.hits, self.misses),
        }


def percent(hits: int, misses: int) -> float:
    """Return the hits among both in percent, with one decimal; 0 while there is neither."""
    return round(100 * hits / (hits + misses), 1) if hits else 0.0


@dataclass(slots=True)
class AliasBudget:
    """Three bounds in bytes, and the figures whose `bytes_held` the last two are for."""

    client_bytes: int = ALIAS_CLIENT_BYTES
    soft_bytes: int = ALIAS_SOFT_BYTES
    hard_bytes: int = ALIAS_HARD_BYTES
    figures: OutboundFigures = field(default_factory=OutboundFigures)

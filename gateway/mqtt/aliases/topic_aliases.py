"""The topic aliases that a client sets on one connection, and figures of all aliases."""

from dataclasses import dataclass, field

from gateway.mqtt.errors import ProtocolError
from gateway.mqtt.reason_codes import ReasonCode
from gateway.settings.broker import ALIAS_CLIENT_BYTES, ALIAS_HARD_BYTES, ALIAS_SOFT_BYTES


@dataclass(slots=True)
class InboundFigures:
    """Aliases set by clients: PUBLISH packets, topic names and bytes since the start.

    `bytes_saved` is net: the bytes of omitted topic names, less those of alias properties.
    `bytes_held` is a gauge: the topic names that have an alias now.
    """

    hits: int = 0  # packets without a topic name
    mappings: int = 0  # packets that set an alias
    evictions: int = 0  # of these, replacing another topic name
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
    """Aliases set by the gateway, as above; only connections that allow aliases are counted.

    `bytes_held` includes the objects around the topic names.
    """

    hits: int = 0
    misses: int = 0  # packets with a topic name
    mappings: int = 0  # of these, those that set an alias
    evictions: int = 0  # mappings removed for another, or for memory
    refused_soft: int = 0  # topics without an alias because of the soft limit
    refused_hard: int = 0  # connections that lost all their aliases at the hard limit
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
    """Return the percentage of hits, with one decimal; 0 if both are 0."""
    return round(100 * hits / (hits + misses), 1) if hits else 0.0


@dataclass(slots=True)
class AliasBudget:
    """Three bounds in bytes, and the figures whose `bytes_held` the last two limit."""

    client_bytes: int = ALIAS_CLIENT_BYTES
    soft_bytes: int = ALIAS_SOFT_BYTES
    hard_bytes: int = ALIAS_HARD_BYTES
    figures: OutboundFigures = field(default_factory=OutboundFigures)

    def change(self, other: "AliasBudget") -> None:
        """Apply another object's bounds from now on."""
        self.client_bytes = other.client_bytes
        self.soft_bytes, self.hard_bytes = other.soft_bytes, other.hard_bytes


ALIAS_PROPERTY = 3
"""Bytes of the property Topic Alias: its identifier and a two byte integer."""


class InboundAliases:
    """The topic of each alias of one connection; a new connection has none [MQTT-3.3.2-7].

    `maximum` is the server's Topic Alias Maximum, 0 for none. At most this many topic names of up
    to 65,535 bytes are stored. Their array is made with the first alias.
    """

    __slots__ = ("_figures", "_maximum", "_topics", "bytes")

    def __init__(self, maximum: int, figures: InboundFigures) -> None:
        self._maximum = maximum
        self._figures = figures
        self._topics: list[bytes] = []
        self.bytes = 0  # of the topic names

    def resolve(self, topic: bytes, alias: int | None) -> bytes:
        """Return the topic name of a PUBLISH in UTF-8, and store it under `alias`.

        Raises ProtocolError: TOPIC_ALIAS_INVALID for an alias outside 1 to the maximum,
        PROTOCOL_ERROR for an empty topic name without an alias, or with an unknown one.
        """
        if alias is None:
            if not topic:
                raise ProtocolError("PUBLISH with neither a topic name nor a topic alias")
            return topic
        if not 0 < alias <= self._maximum:  # [MQTT-3.3.2-8] [MQTT-3.3.2-9] [MQTT-3.3.2-12]
            raise ProtocolError(
                f"topic alias {alias}; allowed: {self._allowed()}", ReasonCode.TOPIC_ALIAS_INVALID
            )
        if topic:
            self._set(alias, topic)
            return topic
        known = self._topics[alias] if self._topics else b""
        if not known:
            raise ProtocolError(f"topic alias {alias} stands for no topic name yet")
        self._figures.hits += 1
        self._figures.bytes_saved += len(known) - ALIAS_PROPERTY
        return known

    def close(self) -> None:
        """Forget every alias: the connection has ended."""
        self._figures.bytes_held -= self.bytes
        self.bytes = 0
        self._topics = []

    def _set(self, alias: int, topic: bytes) -> None:
        if not self._topics:
            self._topics = [b""] * (self._maximum + 1)
        figures, before = self._figures, self._topics[alias]
        figures.mappings += 1
        figures.bytes_saved -= ALIAS_PROPERTY
        if before == topic:
            return
        figures.evictions += before != b""
        more = len(topic) - len(before)
        self.bytes += more
        figures.bytes_held += more
        self._topics[alias] = topic

    def _allowed(self) -> str:
        return f"1 to {self._maximum}" if self._maximum else "none"

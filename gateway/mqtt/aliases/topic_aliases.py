"""The topic aliases that a client sets on one network connection (MQTT 5, section 3.3.2.3.4)."""

from gateway.mqtt.aliases.alias_figures import InboundFigures
from gateway.mqtt.errors import ProtocolError
from gateway.mqtt.reason_codes import ReasonCode

ALIAS_PROPERTY = 3
"""Bytes of the property Topic Alias: its identifier and a two byte integer."""


class InboundAliases:
    """What each alias of one connection stands for; a new connection starts anew [MQTT-3.3.2-7].

    `maximum` is the Topic Alias Maximum that the server stated, 0 for none: so many topic names
    of at most 65,535 bytes are kept, no more, in an array that is made when the first alias comes.
    """

    __slots__ = ("_figures", "_maximum", "_topics", "bytes")

    def __init__(self, maximum: int, figures: InboundFigures) -> None:
        self._maximum = maximum
        self._figures = figures
        self._topics: list[bytes] = []
        self.bytes = 0  # of the topic names

    def resolve(self, topic: bytes, alias: int | None) -> bytes:
        """Return the topic name of a PUBLISH in UTF-8, and let `alias` stand for it from now on.

        Raises ProtocolError: TOPIC_ALIAS_INVALID for an alias outside 1 to the maximum,
        PROTOCOL_ERROR for an empty topic name whose alias is absent or stands for nothing yet.
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
        """Forget every alias: the connection is over."""
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

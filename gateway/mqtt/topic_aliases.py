"""The topic aliases that a client sets on one network connection (MQTT 5, section 3.3.2.3.4)."""

from gateway.mqtt.errors import ProtocolError
from gateway.mqtt.reason_codes import ReasonCode


class InboundAliases:
    """What each alias of one connection stands for; a new connection starts anew [MQTT-3.3.2-7].

    `maximum` is the Topic Alias Maximum that the server stated, 0 for none: so many topic names
    are kept, no more.
    """

    __slots__ = ("_maximum", "_topics")

    def __init__(self, maximum: int) -> None:
        self._maximum = maximum
        self._topics = [""] * (maximum + 1)

    def resolve(self, topic: str, alias: int | None) -> str:
        """Return the topic name of a PUBLISH, and let `alias` stand for it from now on.

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
            self._topics[alias] = topic
        elif not self._topics[alias]:
            raise ProtocolError(f"topic alias {alias} stands for no topic name yet")
        return self._topics[alias]

    def _allowed(self) -> str:
        return f"1 to {self._maximum}" if self._maximum else "none"

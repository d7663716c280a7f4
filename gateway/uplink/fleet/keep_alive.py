"""The keep alive of one connection (MQTT 5, section 3.1.2.10)."""


class KeepAlive:
    """Decides when a PINGREQ is due; `seconds` 0 turns it off. All times are monotonic."""

    def __init__(self, seconds: float, now: float) -> None:
        self.seconds = seconds
        self._sent = self._received = now
        self._asked: float | None = None

    def sent(self, now: float) -> None:
        """Record that a packet was sent."""
        self._sent = now

    def received(self, now: float) -> None:
        """Record that bytes were received; any of them count as an answer."""
        self._received = now
        self._asked = None

    def due(self, now: float) -> bool:
        """Return whether a PINGREQ is due now; it then counts as sent."""
        if not self.seconds or self._asked is not None:
            return False
        if now - min(self._sent, self._received) < self.seconds:
            return False
        self._asked = now
        return True

    def over(self, now: float) -> bool:
        """Return whether a PINGREQ has had no answer for too long."""
        return self._asked is not None and now - self._asked >= self.seconds

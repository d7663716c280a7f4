"""When a connection has to show that it is alive, and when it is not (MQTT 5, section 3.1.2.10)."""


class KeepAlive:
    """Signs of life of one connection; `seconds` 0 asks for none. All times are monotonic."""

    def __init__(self, seconds: float, now: float) -> None:
        self.seconds = seconds
        self._sent = self._received = now
        self._asked: float | None = None

    def sent(self, now: float) -> None:
        """Take in that something left."""
        self._sent = now

    def received(self, now: float) -> None:
        """Take in that something came: that the server answers nothing else counts for us."""
        self._received = now
        self._asked = None

    def due(self, now: float) -> bool:
        """Return whether a PINGREQ has to go now; it is taken to have gone."""
        if not self.seconds or self._asked is not None:
            return False
        if now - min(self._sent, self._received) < self.seconds:
            return False
        self._asked = now
        return True

    def over(self, now: float) -> bool:
        """Return whether a PINGREQ was left without any answer for too long."""
        return self._asked is not None and now - self._asked >= self.seconds

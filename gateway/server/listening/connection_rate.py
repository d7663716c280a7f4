"""How fast new connections may come: a token bucket."""


class ConnectionRate:
    """Allows `rate` connections a second on average, and `burst` at once after a quiet time."""

    __slots__ = ("_at", "_burst", "_rate", "_tokens")

    def __init__(self, rate: float, burst: int) -> None:
        self._rate = rate
        self._burst = burst
        self._tokens = float(burst)
        self._at = 0.0

    def allows(self, now: float) -> bool:
        """Return whether one more may come at `now`, in monotonic seconds; if so it has come."""
        gained = max(0.0, now - self._at) * self._rate
        self._tokens = min(float(self._burst), self._tokens + gained)
        self._at = now
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True

"""A token bucket that may go into debt."""


class TokenBucket:
    """Gives out `rate` tokens a second, of which `burst` seconds' worth can be saved up.

    Something may go as soon as there is a whole token, whatever its size, and what it cost is
    known after: so the balance can fall below zero, and the debt is waited for. In any span of
    t seconds no more is spent than `rate * (t + burst)`, one token and the last thing's cost.
    All times are monotonic seconds.
    """

    __slots__ = ("_balance", "_burst", "_most", "_rate", "_then")

    def __init__(self, rate: float, burst: float, now: float) -> None:
        self._rate = rate
        self._burst = burst
        self._then = now
        self._most = self._balance = max(1.0, rate * burst)

    @property
    def rate(self) -> float:
        """Tokens a second."""
        return self._rate

    def set_rate(self, rate: float, now: float) -> None:
        """Set the rate from `now` on; a debt remains, saved tokens are capped."""
        self._fill(now)
        self._rate = rate
        self._most = max(1.0, rate * self._burst)
        self._balance = min(self._balance, self._most)

    def ready(self, now: float) -> bool:
        """Return whether a token is available."""
        if now > self._then:
            self._fill(now)
        return self._balance >= 1.0

    def wait(self, now: float) -> float:
        """Return the seconds until a token is available."""
        self._fill(now)
        return max(0.0, (1.0 - self._balance) / self._rate)

    def spend(self, tokens: float) -> None:
        """Spend tokens; the balance may become negative."""
        self._balance -= tokens

    def _fill(self, now: float) -> None:
        if now > self._then:
            self._balance = min(self._most, self._balance + (now - self._then) * self._rate)
            self._then = now

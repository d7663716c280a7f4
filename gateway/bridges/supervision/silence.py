"""Notices that a bridge which used to bring something brings nothing any more."""

LEAST = 5.0
"""Seconds of silence that are never an alarm: a busy board stands still for some now and then."""

LEARNING = 3
"""Gaps after which the usual one is known; a bridge that has brought less is not missed."""

FORGETTING = 0.05
"""The part by which the usual gap moves towards a shorter one; a longer one counts at once."""


class Silence:
    """Learns the usual gap between readings; `factor` times as long is a silence, 0 is never.

    After a silence was told, the next is told when it has lasted twice as long: each is a time
    to try something.
    """

    def __init__(self, factor: float) -> None:
        self._factor = factor
        self._usual = 0.0
        self._gaps = 0
        self._last: float | None = None
        self._patience = 1.0

    @property
    def usual(self) -> float:
        """The usual gap in seconds."""
        return self._usual

    def heard(self, now: float) -> None:
        """Take that something came at `now`, monotonic seconds."""
        gap = 0.0 if self._last is None else now - self._last
        first, self._last = self._last is None, now
        told, self._patience = self._patience > 1.0, 1.0
        if first or told:  # the length of an outage is not usual
            return
        self._gaps += 1
        slower = gap > self._usual
        self._usual = gap if slower else self._usual + FORGETTING * (gap - self._usual)

    def look(self, now: float) -> float | None:
        """Return for how many seconds nothing came if that is to be told now, else None."""
        if self._last is None or not self._factor or self._gaps < LEARNING:
            return None
        silent = now - self._last
        if silent < max(LEAST, self._factor * self._usual) * self._patience:
            return None
        self._patience *= 2
        return silent

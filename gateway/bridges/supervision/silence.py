"""Detects that a bridge which used to produce readings is silent."""

LEAST = 5.0
"""Seconds of silence that never raise an alarm: a busy board pauses for some now and then."""

LEARNING = 3
"""Gaps after which the usual one is known, if they lasted LEAST seconds: readings that waited for
the gateway arrive all at once. A bridge with fewer is not watched."""

FORGETTING = 0.05
"""The fraction by which the usual gap moves towards a shorter one: readings that waited should have
little effect. A longer gap counts at once."""


class Silence:
    """Learns the usual gap between readings; a silence is `factor` times as long, 0 is never.

    After a reported silence, the next report follows when it has lasted twice as long: each is a
    time to try a restart. A reported silence that ends does not change the usual gap, but the next
    one does if hardly anything arrived between the two.
    """

    def __init__(self, factor: float) -> None:
        self._factor = factor
        self._usual = 0.0
        self._gaps = 0
        self._first: float | None = None
        self._last = 0.0
        self._back: float | None = None  # when the last reported silence ended
        self._patience = 1.0

    @property
    def usual(self) -> float:
        """The usual gap in seconds."""
        return self._usual

    @property
    def is_known(self) -> bool:
        """Whether enough was received to know the usual gap."""
        first, last = self._first, self._last
        return first is not None and self._gaps >= LEARNING and last - first >= LEAST

    def received(self, now: float) -> None:
        """Record that something arrived at `now`, monotonic seconds."""
        if not self._factor:
            return
        if self._first is None:
            self._first = self._last = now
            return
        gap, before, self._last = now - self._last, self._last, now
        if self._patience > 1.0 and not self._is_rhythm(gap, before):
            return
        self._gaps += 1
        slower = gap >= self._usual
        share = 1.0 if slower else FORGETTING * gap / self._usual
        self._usual += share * (gap - self._usual)

    def _is_rhythm(self, gap: float, before: float) -> bool:
        """End a reported silence; return whether it filled nearly all time since the last."""
        back, self._back = self._back, self._last
        self._patience = 1.0
        return back is not None and (before - back) * self._factor < gap

    def check(self, now: float) -> float | None:
        """Return the length of a silence in seconds if it is to be reported now, else None."""
        if not self.is_known:
            return None
        silent = now - self._last
        if silent < max(LEAST, self._factor * self._usual) * self._patience:
            return None
        self._patience *= 2
        return silent

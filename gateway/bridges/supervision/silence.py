"""Notices that a bridge which used to bring something brings nothing any more."""

LEAST = 5.0
"""Seconds of silence that are never an alarm: a busy board stands still for some now and then."""

LEARNING = 3
"""Gaps after which the usual one is known, if they took LEAST seconds: what has waited for the
gateway comes all at once. A bridge that has brought less is not missed."""

FORGETTING = 0.05
"""The part of the time by which the usual gap moves towards a shorter one: what has waited counts
for as little as it takes. A longer one counts at once."""


class Silence:
    """Learns the usual gap between readings; `factor` times as long is a silence, 0 is never.

    After a silence was told, the next is told when it has lasted twice as long: each is a time
    to try something. One that is told and ends is not usual, but the next one is if hardly anything
    came between the two.
    """

    def __init__(self, factor: float) -> None:
        self._factor = factor
        self._usual = 0.0
        self._gaps = 0
        self._first: float | None = None
        self._last = 0.0
        self._back: float | None = None  # when the last silence that was told ended
        self._patience = 1.0

    @property
    def usual(self) -> float:
        """The usual gap in seconds."""
        return self._usual

    @property
    def is_known(self) -> bool:
        """Whether enough was heard to know the usual gap."""
        first, last = self._first, self._last
        return first is not None and self._gaps >= LEARNING and last - first >= LEAST

    def received(self, now: float) -> None:
        """Take that something came at `now`, monotonic seconds."""
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
        """End a silence that was told; return whether it took nearly all time since the last."""
        back, self._back = self._back, self._last
        self._patience = 1.0
        return back is not None and (before - back) * self._factor < gap

    def check(self, now: float) -> float | None:
        """Return for how many seconds nothing came if that is to be told now, else None."""
        if not self.is_known:
            return None
        silent = now - self._last
        if silent < max(LEAST, self._factor * self._usual) * self._patience:
            return None
        self._patience *= 2
        return silent

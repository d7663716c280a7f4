"""What is tried, one after the other, while a scan brings nothing."""

STEPS = ("restart the scan", "power-cycle the adapter", "alarm")


class Ladder:
    """Tells a step after each `patience` seconds of silence; once at its top, it begins anew.

    From the second time on, each step waits twice as long as in the time before.
    """

    def __init__(self, patience: float, now: float) -> None:
        self._patience = patience
        self._wait = patience
        self._since = now
        self._step = 0

    def heard(self, now: float) -> None:
        """Begin at the bottom: something came."""
        self._since, self._step, self._wait = now, 0, self._patience

    def next(self, now: float) -> str | None:
        """Return the step to be taken now, None while it is too soon."""
        if now - self._since < self._wait:
            return None
        step = STEPS[self._step]
        self._since = now
        self._step += 1
        if self._step == len(STEPS):
            self._step, self._wait = 0, self._wait * 2
        return step

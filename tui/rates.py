"""Messages per second, from counters that the gateway refreshes in rounds.

A round is one refresh of `$SYS`; a counter that did not change is not in it, but the uptime always
is, so the uptime's arrival marks the round and gives its time.
"""

from dataclasses import dataclass

ROUND_SPREAD = 0.25
"""seconds after the uptime's arrival in which the rest of its round arrives"""


@dataclass(frozen=True, slots=True)
class Round:
    """One refresh of `$SYS`: the gateway's uptime in it and when it reached us."""

    uptime: int
    at: float
    retained: bool


class Rates:
    """The counters' differences between the two last rounds, for each second."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._base: dict[str, int] = {}
        self._rates: dict[str, float] | None = None
        self._last: Round | None = None
        self._arriving: Round | None = None

    def get(self, name: str) -> float | None:
        """Return the rate of a counter, or None while it is not known.

        A counter is published when it first counts, so that one never heard of stands still.
        """
        return None if self._rates is None else self._rates.get(name, 0.0)

    def count(self, name: str, count: int) -> None:
        """Take the present value of a counter."""
        self._counts[name] = count

    def begin_round(self, uptime: int, now: float, *, retained: bool = False) -> None:
        """Take the uptime, in seconds, that marks a round."""
        self._arriving = Round(uptime, now, retained)

    def settle(self, now: float) -> bool:
        """Compute the rates if a round is complete by now; return whether they changed."""
        arriving = self._arriving
        if arriving is None or now - arriving.at < ROUND_SPREAD:
            return False
        elapsed = self._elapsed(arriving)
        self._rates = None if elapsed is None else self._differences(elapsed)
        self._base = dict(self._counts)
        self._last, self._arriving = arriving, None
        return True

    def forget(self) -> None:
        """Begin anew, as after a reconnection: what was counted before tells nothing now."""
        self._counts.clear()
        self._base.clear()
        self._rates = self._last = self._arriving = None

    def _elapsed(self, arriving: Round) -> float | None:
        """Return the seconds since the last round, or None when there is none to compare with."""
        last = self._last
        if last is None or arriving.uptime < last.uptime:
            return None
        # A retained round is older than its arrival; the gateway's own clock tells by how much.
        elapsed = arriving.uptime - last.uptime if last.retained else arriving.at - last.at
        return elapsed if elapsed > 0 else None

    def _differences(self, elapsed: float) -> dict[str, float]:
        base = self._base
        return {
            name: max(0, count - base.get(name, 0)) / elapsed
            for name, count in self._counts.items()
        }

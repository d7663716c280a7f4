"""Messages per second, from counters that the gateway refreshes in rounds.

A round is one refresh of `$SYS`; a counter that did not change is not in it, but the uptime always
is. Each counter has a fixed place in a round before or after the uptime, so what is known of it
when the uptime comes is of the same round each time, however slow the network is.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

WINDOW = 10.0
"""seconds that a rate is taken over, or the distance of two rounds if that is longer"""
MAX_ROUNDS = 128
"""rounds kept: as many as come in WINDOW at the shortest interval, 0.1 s"""
CLOCKS_APART = 1.5
"""seconds by which our clock may differ from the gateway's whole seconds before theirs counts"""
STALE_ROUNDS = 2.5
"""rounds that may be missing before a figure is stale"""
FIRST_PATIENCE = 15.0
"""seconds without a round before figures are stale while their interval is not known"""
LEAST_PATIENCE = 2.5
"""seconds before figures are stale at all"""


@dataclass(frozen=True, slots=True)
class Round:
    """One refresh of `$SYS`: the uptime in it, when it reached us, and the counters then."""

    uptime: float
    at: float
    counts: Mapping[str, float]


class Rates:
    """The counters' differences over the last ten seconds of rounds, for each second."""

    def __init__(self) -> None:
        self._rounds: deque[Round] = deque(maxlen=MAX_ROUNDS)
        self._rates: dict[str, float] = {}

    def get(self, name: str) -> float | None:
        """Return the rate of a counter, or None until two rounds with a value of it are known."""
        return self._rates.get(name)

    def take_round(self, uptime: float, now: float, counts: Mapping[str, float]) -> None:
        """Take what the counters are as the uptime comes, which was not retained."""
        if self._rounds and uptime < self._rounds[-1].uptime:
            self._rounds.clear()  # the gateway began anew
        arriving = Round(uptime, now, counts)
        while len(self._rounds) > 1 and _between(self._rounds[1], arriving) >= WINDOW:
            self._rounds.popleft()
        self._rounds.append(arriving)
        self._rates = {}
        for name, count in counts.items():
            first = next((each for each in self._rounds if name in each.counts), arriving)
            elapsed = _between(first, arriving)
            if elapsed > 0:
                self._rates[name] = max(0.0, count - first.counts[name]) / elapsed

    def interval(self) -> float | None:
        """Return the usual seconds between two rounds; None before the second."""
        if len(self._rounds) < 2:
            return None
        return _between(self._rounds[0], self._rounds[-1]) / (len(self._rounds) - 1)

    def stale(self, now: float, since: float) -> float | None:
        """Return for how long figures are missing, if for more than 2.5 rounds.

        `since` is when we began to hear.
        """
        last = self._rounds[-1].at if self._rounds else since
        interval = self.interval()
        limit = FIRST_PATIENCE if interval is None else STALE_ROUNDS * interval
        return now - last if now - last > max(LEAST_PATIENCE, limit) else None

    def forget(self) -> None:
        """Begin anew, as after a reconnection: what was counted before tells nothing now."""
        self._rounds.clear()
        self._rates = {}


def _between(first: Round, last: Round) -> float:
    """Return the seconds between two rounds.

    The gateway's own clock has only whole seconds; it counts where a slow network moved ours.
    """
    ours, theirs = last.at - first.at, last.uptime - first.uptime
    return ours if abs(ours - theirs) <= CLOCKS_APART else theirs

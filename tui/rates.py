"""Messages per second, from counters that the gateway refreshes in rounds.

A round is one refresh of `$SYS`; a counter that did not change is not in it, but the uptime always
is, so the uptime's arrival marks the round and gives its time.
"""

from collections import deque
from dataclasses import dataclass

ROUND_SPREAD = 0.25
"""seconds after the uptime's arrival in which the rest of its round arrives"""
WINDOW = 10.0
"""seconds that a rate is taken over, or the distance of two rounds if that is longer"""
MAX_ROUNDS = 128
"""rounds kept: as many as come in WINDOW at the shortest interval, 0.1 s"""
OWN = "own"
"""the name under which `Rates` has what this screen was sent"""


@dataclass(frozen=True, slots=True)
class Round:
    """One refresh of `$SYS`: the gateway's uptime in it and when it reached us."""

    uptime: int
    at: float
    retained: bool


class Rates:
    """The counters' differences over the last ten seconds of rounds, for each second.

    `own` counts what this screen itself was sent: its subscriptions are traffic, too.
    """

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._rates: dict[str, float] | None = None
        self._rounds: deque[tuple[Round, dict[str, int]]] = deque(maxlen=MAX_ROUNDS)
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

    def settle(self, now: float, own: int = 0) -> bool:
        """Compute the rates if a round is complete by now; return whether they changed.

        `own` are the messages that this screen has been sent over its connection.
        """
        arriving = self._arriving
        if arriving is None or now - arriving.at < ROUND_SPREAD:
            return False
        # A retained round was counted before our connection and what it brought.
        counts = {**self._counts, OWN: 0 if arriving.retained else own}
        if self._rounds and arriving.uptime < self._rounds[-1][0].uptime:
            self._rounds.clear()  # the gateway began anew
        while len(self._rounds) > 1 and _between(self._rounds[1][0], arriving) >= WINDOW:
            self._rounds.popleft()
        self._rates = self._compare(arriving, counts)
        self._rounds.append((arriving, counts))
        self._arriving = None
        return True

    def forget(self) -> None:
        """Begin anew, as after a reconnection: what was counted before tells nothing now."""
        self._counts.clear()
        self._rounds.clear()
        self._rates = self._arriving = None

    def _compare(self, arriving: Round, counts: dict[str, int]) -> dict[str, float] | None:
        """Return the rates since the first round of the window, None where there is none."""
        if not self._rounds:
            return None
        first, base = self._rounds[0]
        elapsed = _between(first, arriving)
        if elapsed <= 0:
            return None
        return {name: max(0, count - base.get(name, 0)) / elapsed for name, count in counts.items()}


def _between(first: Round, last: Round) -> float:
    """Return the seconds between two rounds.

    A retained round is older than its arrival; the gateway's own clock tells by how much.
    """
    return last.uptime - first.uptime if first.retained else last.at - first.at

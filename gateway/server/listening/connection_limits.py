"""Limits a listener's connections: by rate, by number, and by what the process can hold."""

import logging
from collections.abc import Iterable
from enum import Enum

from gateway.counters import Counters
from gateway.server.listening.newcomers import Newcomers, close_one
from gateway.settings.listener import ListenerSettings


class ConnectionRate:
    """Allows `rate` connections a second on average, and `burst` at once after a pause."""

    __slots__ = ("_at", "_burst", "_rate", "_tokens")

    def __init__(self, rate: float, burst: int) -> None:
        self._rate = rate
        self._burst = burst
        self._tokens = float(burst)
        self._at = 0.0

    def allows(self, now: float) -> bool:
        """Count a connection at `now`, in monotonic seconds; return whether it is allowed."""
        gained = max(0.0, now - self._at) * self._rate
        self._tokens = min(float(self._burst), self._tokens + gained)
        self._at = now
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True


logger = logging.getLogger(__name__)

MAXIMUM_REFUSALS = 16
"""Connections above a listener's maximum that stay open until their CONNECT is answered."""

ROUNDS = 4
"""Rounds of the loop in which a connection may send before it is closed for new ones."""

LOG_INTERVAL = 60.0
"""Seconds between two log lines about a listener that refuses connections or is full."""


class Verdict(Enum):
    """The decision on a new connection."""

    ADMITTED = "admitted"
    REFUSED = "refused"  # its CONNECT is answered with 0x97
    CLOSED = "closed"  # immediately


class ProcessConnections:
    """The connections of all listeners together, and the most that the process may have."""

    __slots__ = ("maximum", "newcomers", "open")

    def __init__(self, maximum: int) -> None:
        self.maximum = maximum
        self.open = 0
        self.newcomers: list[Newcomers] = []


class ConnectionLimits:
    """Admits connections of one listener by rate and number; `release` notes their end.

    At the limit a new connection replaces one whose CONNECT was not accepted yet: otherwise idle
    connections would block the listener. Connected clients stay.
    """

    __slots__ = (
        "_counters",
        "_name",
        "_newcomers",
        "_rate",
        "_silent_until",
        "maximum",
        "open",
        "process",
    )

    def __init__(
        self,
        name: str,
        settings: ListenerSettings,
        counters: Counters,
        process: ProcessConnections | None,
    ) -> None:
        self._name = name
        self._counters = counters
        self.process = process or ProcessConnections(1_000_000)
        self.open = 0
        self.change(settings)
        self._silent_until = 0.0
        self._newcomers: Newcomers | None = None

    def change(self, settings: ListenerSettings) -> None:
        """Apply these settings from now on; connected clients stay."""
        self.maximum = settings.maximum_connections or self.process.maximum
        self._rate: ConnectionRate | None = None
        if settings.connection_rate is not None:
            burst = settings.connection_burst or max(1, int(settings.connection_rate))
            self._rate = ConnectionRate(settings.connection_rate, burst)

    def end(self) -> None:
        """Forget the newcomers: the listener was removed."""
        if self._newcomers is not None:
            self.process.newcomers.remove(self._newcomers)
            self._newcomers = None

    @property
    def least_at_once(self) -> int:
        """How many connections may arrive together so that each is read before it may be closed."""
        return max(1, self.maximum // ROUNDS)

    def watch(self, newcomers: Newcomers) -> None:
        """Close these, if need be, for new ones; each calls `release` itself."""
        self._newcomers = newcomers
        self.process.newcomers.append(newcomers)

    def judge(self, now: float) -> Verdict:
        """Return the decision on a connection at `now`, in monotonic seconds."""
        if self._rate is not None and not self._rate.allows(now):
            return self._turn_away(now, "over_rate", Verdict.CLOSED)
        process = self.process
        if process.open >= process.maximum and not self._evict(now, process.newcomers):
            return self._turn_away(now, "over_capacity", Verdict.CLOSED)
        own = () if self._newcomers is None else (self._newcomers,)
        full = self.open >= self.maximum and not self._evict(now, own)
        if full and self.open >= self.maximum + MAXIMUM_REFUSALS:
            return self._turn_away(now, "over_maximum", Verdict.CLOSED)
        self._count(1)
        if full:
            return self._turn_away(now, "over_maximum", Verdict.REFUSED)
        return Verdict.ADMITTED

    def release(self) -> None:
        """Note the end of a connection that was admitted or refused."""
        self._count(-1)

    def _count(self, places: int) -> None:
        self.open += places
        self.process.open += places
        self._counters.set("tidegate/connections/open", self.process.open)

    def _evict(self, now: float, newcomers: Iterable[Newcomers]) -> bool:
        """Close a connection without an accepted CONNECT; return whether there was one."""
        if not close_one(newcomers):
            return False
        self._counters.add("tidegate/connections/given_up")
        self._warn(now, "is full and closes connections without an accepted CONNECT for new ones")
        return True

    def _turn_away(self, now: float, cause: str, verdict: Verdict) -> Verdict:
        self._counters.add(f"tidegate/connections/{cause}")
        self._warn(now, f"refuses connections: {cause.replace('_', ' ')}")
        return verdict

    def _warn(self, now: float, what: str) -> None:
        """Log a line, unless there was one recently."""
        if now >= self._silent_until:
            self._silent_until = now + LOG_INTERVAL
            logger.warning("%s %s", self._name, what)

"""How many connections a listener admits: by rate, by number, and by what the process can hold."""

import logging
from enum import Enum

from gateway.config.settings import ListenerConfig
from gateway.counters import Counters
from gateway.server.listening.connection_rate import ConnectionRate

logger = logging.getLogger(__name__)

MAXIMUM_REFUSALS = 16
"""Connections beyond a listener's maximum that are kept until they have been told so."""

LOG_INTERVAL = 60.0
"""Seconds between two lines that say that a listener turns connections away."""


class Verdict(Enum):
    """What becomes of a new connection."""

    ADMITTED = "admitted"
    REFUSED = "refused"  # its CONNECT is answered with 0x97
    CLOSED = "closed"  # at once


class Room:
    """The connections of all listeners together, and how many the process has room for."""

    __slots__ = ("maximum", "taken")

    def __init__(self, maximum: int) -> None:
        self.maximum = maximum
        self.taken = 0


class ConnectionLimits:
    """Admits connections of one listener by rate and number; `leave` gives a place back."""

    __slots__ = ("_counters", "_name", "_rate", "_room", "_silent_until", "maximum", "taken")

    def __init__(
        self, name: str, settings: ListenerConfig, counters: Counters, room: Room | None
    ) -> None:
        self._name = name
        self._counters = counters
        self._room = room or Room(1_000_000)
        self.maximum = settings.maximum_connections or self._room.maximum
        self.taken = 0
        self._rate: ConnectionRate | None = None
        if settings.connection_rate is not None:
            burst = settings.connection_burst or max(1, int(settings.connection_rate))
            self._rate = ConnectionRate(settings.connection_rate, burst)
        self._silent_until = 0.0

    def judge(self, now: float) -> Verdict:
        """Return what becomes of a connection that comes at `now`, in monotonic seconds."""
        if self._room.taken >= self._room.maximum:
            return self._turn_away(now, "no_room", Verdict.CLOSED)
        if self._rate is not None and not self._rate.allows(now):
            return self._turn_away(now, "over_rate", Verdict.CLOSED)
        if self.taken >= self.maximum + MAXIMUM_REFUSALS:
            return self._turn_away(now, "over_maximum", Verdict.CLOSED)
        full = self.taken >= self.maximum
        self._take(1)
        if full:
            return self._turn_away(now, "over_maximum", Verdict.REFUSED)
        return Verdict.ADMITTED

    def leave(self) -> None:
        """Note the end of a connection that was admitted or refused."""
        self._take(-1)

    def _take(self, places: int) -> None:
        self.taken += places
        self._room.taken += places
        self._counters.set("tidegate/connections/open", self._room.taken)

    def _turn_away(self, now: float, cause: str, verdict: Verdict) -> Verdict:
        self._counters.add(f"tidegate/connections/{cause}")
        if now >= self._silent_until:
            self._silent_until = now + LOG_INTERVAL
            words = cause.replace("_", " ")
            logger.warning("%s turns connections away: %s", self._name, words)
        return verdict

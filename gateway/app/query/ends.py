"""How the last connections of each client ended, and whether two devices share an identifier."""

from collections import OrderedDict, deque
from typing import TypeAlias

from gateway.app.parts import Run
from gateway.broker.notices import ConnectionEnd

MAXIMUM_CLIENTS = 1_000
"""Client identifiers that are remembered, of those that ended last: some 1 MB."""

REMEMBERED = 5
"""Ends of one client identifier."""

SHARED_SECONDS = 60.0
"""The last ends of an identifier that several devices use are at most this many seconds old."""

TAKE_OVERS = 3
"""Take-overs within SHARED_SECONDS that make that likely."""

FLAPPING_SECONDS = 60.0
"""A flapping client ended all of its REMEMBERED connections within this many seconds."""

End: TypeAlias = tuple[float, int, ConnectionEnd]
"""The monotonic second, ms since 1970, and the end."""


class Ends:
    """The last ends by client identifier; the oldest are evicted first."""

    def __init__(self, run: Run) -> None:
        self._clock = run.clock
        self._ends: OrderedDict[str, deque[End]] = OrderedDict()

    def add(self, end: ConnectionEnd) -> None:
        """Remember how a connection ended."""
        ends = self._ends.setdefault(end.client_id, deque(maxlen=REMEMBERED))
        ends.append((self._clock.monotonic(), self._clock.wall_ms(), end))
        self._ends.move_to_end(end.client_id)
        if len(self._ends) > MAXIMUM_CLIENTS:
            self._ends.popitem(last=False)

    def of(self, client_id: str) -> list[dict[str, object]]:
        """Return the last ends of a client identifier, the newest first."""
        return [
            {
                "time": wall,
                "address": end.peer,
                "seconds": round(end.seconds, 1),
                "reason": end.reason,
            }
            for _, wall, end in reversed(self._ends.get(client_id, ()))
        ]

    def last(self, client_id: str) -> int | None:
        """Return when its last connection ended (ms since 1970), None if that is unknown."""
        found = self._ends.get(client_id)
        return None if found is None else found[-1][1]

    def is_shared(self, client_id: str, now: float) -> bool:
        """Return whether two devices probably use this identifier: they take over each other."""
        found = self._ends.get(client_id)
        if found is None:
            return False
        recent = [end for at, _, end in found if now - at <= SHARED_SECONDS]
        return sum(end.taken_over for end in recent) >= TAKE_OVERS

    def is_flapping(self, client_id: str, now: float) -> bool:
        """Return whether a client connects again and again, and its connections do not last."""
        found = self._ends.get(client_id)
        if found is None or len(found) < REMEMBERED:
            return False
        return now - found[0][0] <= FLAPPING_SECONDS

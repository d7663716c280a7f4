"""Lets the uplink's connection write at the end of a turn, like those of clients."""

from collections.abc import Callable

from gateway.broker.instant import Instant
from gateway.server.turn import Turn


class TurnEnd:
    """Calls its last function at the end of the turn in which it was set."""

    active = True

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._call: Callable[[], None] = lambda: None

    def __call__(self, call: Callable[[], None]) -> None:
        """Have `call` called."""
        self._call = call
        self._turn.touch(self)

    def flush(self, committed: int, now: Instant) -> int:
        """Call it; nothing waits for a batch."""
        del committed, now
        self._call()
        return 0

"""Timers for held messages: one for all connections that are due at the same moment."""

from collections.abc import Callable
from typing import Any

from gateway.broker.deadlines import Deadlines
from gateway.broker.instant import Instant

Holding = Callable[[], None]
"""A connection with held messages; calling it makes it write at the end of the turn."""


class FlushWheel:
    """Connections by the monotonic second at which they must be written.

    Those of one second share a deadline, and a second without any costs nothing. There are up to
    `maximum`, each once; one more is refused, and counted in `refused`.
    """

    def __init__(self, deadlines: Deadlines, maximum: int) -> None:
        self._deadlines = deadlines
        self.maximum = maximum
        self._due: dict[Holding, float] = {}
        self._slots: dict[float, dict[Holding, None]] = {}
        self.refused = 0

    @property
    def sessions(self) -> int:
        """How many connections hold messages."""
        return len(self._due)

    def add(self, connection: Holding, due: float) -> bool:
        """Have the connection written at second `due` or before; return False at the limit."""
        planned = self._due.get(connection)
        if planned is not None:
            if planned <= due:
                return True
            self.discard(connection)
        elif len(self._due) >= self.maximum:
            self.refused += 1
            return False
        slot = self._slots.get(due)
        if slot is None:
            slot = self._slots[due] = {}
            self._deadlines.set(("flush", due), due, self._flush)
        slot[connection] = None
        self._due[connection] = due
        return True

    def discard(self, connection: Holding) -> None:
        """Forget a connection that holds nothing any more, if it is known."""
        due = self._due.pop(connection, None)
        if due is None:
            return
        slot = self._slots[due]
        del slot[connection]
        if not slot:
            del self._slots[due]
            self._deadlines.discard(("flush", due))

    def _flush(self, key: Any, _: Instant) -> None:
        for connection in self._slots.pop(key[1]):
            del self._due[connection]
            connection()

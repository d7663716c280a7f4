"""When messages leave that delivery policies hold: one timer for all sessions of one moment."""

from typing import Any, Protocol

from gateway.broker.deadlines import Deadlines
from gateway.broker.instant import Instant


class Holding(Protocol):
    """A connection with messages that are held."""

    def flush_due(self) -> None:
        """Write what was held until now."""
        ...


class FlushWheel:
    """Connections by the monotonic second at which they are to be written.

    Those of one second share a deadline, and a second without any costs nothing. There are up to
    `maximum`; one more is not taken, and is counted in `refused`.
    """

    def __init__(self, deadlines: Deadlines, maximum: int) -> None:
        self._deadlines = deadlines
        self._maximum = maximum
        self._slots: dict[float, list[Holding]] = {}
        self.sessions = 0
        self.refused = 0

    def add(self, connection: Holding, due: float) -> bool:
        """Have the connection written at second `due`; return False if there is no room."""
        if self.sessions >= self._maximum:
            self.refused += 1
            return False
        slot = self._slots.get(due)
        if slot is None:
            slot = self._slots[due] = []
            self._deadlines.set(("flush", due), due, self._flush)
        slot.append(connection)
        self.sessions += 1
        return True

    def _flush(self, key: Any, _: Instant) -> None:
        connections = self._slots.pop(key[1])
        self.sessions -= len(connections)
        for connection in connections:
            connection.flush_due()

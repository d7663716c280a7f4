"""Messages on their way from the network's thread to the screen, in a bounded queue."""

from collections import deque
from threading import Lock
from typing import NamedTuple

MAX_MESSAGES = 16_384
"""messages; the oldest is dropped and counted, since a screen wants the newest"""
MAX_BYTES = 8 * 1024 * 1024
"""bytes of topics and payloads; the oldest are dropped and counted"""


class Arrival(NamedTuple):
    """A message and when it arrived, in seconds since 1970."""

    topic: str
    payload: bytes
    retained: bool
    at: float
    where: str = ""
    """the `$where` that it has passed"""


class Inbox:
    """A queue between two threads that drops the oldest arrivals when it is full."""

    def __init__(self, messages: int = MAX_MESSAGES, octets: int = MAX_BYTES) -> None:
        self._messages = messages
        self._octets = octets
        self._arrivals: deque[Arrival] = deque()
        self._held = 0
        self._lock = Lock()
        self.dropped = 0
        """arrivals that were never taken"""

    def __len__(self) -> int:
        return len(self._arrivals)

    def put(self, arrival: Arrival) -> None:
        """Add an arrival, at the cost of the oldest ones if need be."""
        with self._lock:
            self._arrivals.append(arrival)
            self._held += _octets(arrival)
            while len(self._arrivals) > self._messages or self._held > self._octets:
                self._held -= _octets(self._arrivals.popleft())
                self.dropped += 1

    def pop(self) -> Arrival | None:
        """Remove and return the oldest arrival; None when there is none."""
        with self._lock:
            if not self._arrivals:
                return None
            arrival = self._arrivals.popleft()
            self._held -= _octets(arrival)
            return arrival

    def clear(self) -> None:
        """Remove all arrivals, as at a new connection."""
        with self._lock:
            self._arrivals.clear()
            self._held = 0


def _octets(arrival: Arrival) -> int:
    return len(arrival.topic) + len(arrival.payload)

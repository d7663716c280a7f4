"""QoS 2 messages of a client that were accepted and not released yet (MQTT 5, section 4.3.3)."""

from collections.abc import Iterator, Sequence

from gateway.session.queue.memory import QueueMemory

MAXIMUM_INCOMING = 10_000
"""Packet identifiers of one session without their PUBREL; at most so many, or twice our Receive
Maximum if that is more. A client may fill a window, reconnect, and fill another."""

IDENTIFIER_OVERHEAD = 100
"""Bytes of one of them: the number and its dictionary entry."""


class Incoming:
    """The packet identifiers that wait for PUBREL, which outlive a connection.

    When there are too many, or the memory that sessions share is full, the caller must refuse the
    next message; those here stay. If a client publishes and releases in the order of its packet
    identifiers, as most do, only the first and the last are stored.
    """

    __slots__ = ("_first", "_identifiers", "_memory", "_stop", "maximum")

    def __init__(self, maximum: int, memory: QueueMemory) -> None:
        self.maximum = maximum
        self._memory = memory
        self._identifiers: dict[int, bool] = {}  # True if published on this connection
        self._first = self._stop = 0  # a range, all published on this connection

    def __len__(self) -> int:
        return len(self._identifiers) + self._stop - self._first

    def __iter__(self) -> Iterator[int]:
        yield from self._identifiers
        yield from range(self._first, self._stop)

    def __contains__(self, packet_id: int) -> bool:
        return self._first <= packet_id < self._stop or packet_id in self._identifiers

    @property
    def full(self) -> bool:
        """True while no identifier may be added."""
        return len(self) >= self.maximum or self._memory.full

    @property
    def capacity(self) -> int:
        """How many identifiers may be added."""
        memory = self._memory
        by_memory = -((memory.bytes - memory.maximum_bytes) // IDENTIFIER_OVERHEAD)
        return min(self.maximum - len(self), by_memory)

    def begin(self) -> None:
        """Start on a new connection, on which nothing was published yet."""
        self._identifiers = dict.fromkeys(self, False)
        self._first = self._stop = 0

    def add(self, packet_id: int) -> bool:
        """Store the identifier; return whether it is new on this connection."""
        if self._first <= packet_id < self._stop:
            return False
        before = self._identifiers.get(packet_id)
        if before is None:
            self._memory.charge(IDENTIFIER_OVERHEAD)
        self._identifiers[packet_id] = True
        return not before

    def fresh(self, packet_ids: Sequence[int]) -> int:
        """Return how many of the first identifiers are new and different from each other."""
        known = self._identifiers.keys()
        waiting = range(self._first, self._stop)
        if (
            isinstance(packet_ids, range)
            and known.isdisjoint(packet_ids)
            and (packet_ids.stop <= waiting.start or packet_ids.start >= waiting.stop)
        ):
            return len(packet_ids)
        seen: set[int] = set()
        for packet_id in packet_ids:
            if packet_id in self or packet_id in seen:
                break
            seen.add(packet_id)
        return len(seen)

    def add_all(self, packet_ids: Sequence[int]) -> bool:
        """Store identifiers, as many as `capacity` allows.

        Return False, storing none, if one is known.

        A range has a step of one, as in `publication.packet_ids`.
        """
        count = len(packet_ids)
        if self._identifiers and not self._identifiers.keys().isdisjoint(packet_ids):
            return False
        if isinstance(packet_ids, range) and self._follow(packet_ids):
            self._stop += count
        elif self._first < self._stop and any(map(self.__contains__, packet_ids)):
            return False
        else:
            new = dict.fromkeys(packet_ids, True)
            if len(new) < count:
                return False
            self._identifiers.update(new)
        self._memory.charge(IDENTIFIER_OVERHEAD * count)
        return True

    def _follow(self, packet_ids: range) -> bool:
        """Return whether these follow the range, or are the first."""
        # an empty range may begin anywhere
        if self._first == self._stop:
            self._first = self._stop = packet_ids.start
        return self._stop == packet_ids.start

    def remove_all(self, packet_ids: Sequence[int]) -> bool:
        """Forget identifiers.

        Return False, and forget none, unless this connection published all.
        """
        count = len(packet_ids)
        if (
            isinstance(packet_ids, range)
            and packet_ids.start == self._first
            and packet_ids.stop <= self._stop
        ):
            self._first += count
        else:
            self._open()
            identifiers = self._identifiers
            if len(set(packet_ids)) < count or not all(map(identifiers.get, packet_ids)):
                return False
            for packet_id in packet_ids:
                del identifiers[packet_id]
            if not identifiers:
                identifiers.clear()  # which also frees its memory
        self._memory.charge(-IDENTIFIER_OVERHEAD * count)
        return True

    def _open(self) -> None:
        """Replace the range by single identifiers."""
        if self._first < self._stop:
            self._identifiers.update(dict.fromkeys(range(self._first, self._stop), True))
            self._first = self._stop

    def remove(self, packet_id: int) -> bool | None:
        """Forget the identifier; return whether this connection published it, None if unknown."""
        if packet_id == self._first < self._stop:
            self._first += 1
            published: bool | None = True
        else:
            self._open()
            published = self._identifiers.pop(packet_id, None)
            if not self._identifiers:
                self._identifiers.clear()
        if published is not None:
            self._memory.charge(-IDENTIFIER_OVERHEAD)
        return published

    def clear(self) -> None:
        """Forget them all: the session has ended."""
        self._memory.charge(-IDENTIFIER_OVERHEAD * len(self))
        self._identifiers = {}
        self._first = self._stop = 0

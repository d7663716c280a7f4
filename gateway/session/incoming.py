"""QoS 2 messages of a client that were taken and not released yet (MQTT 5, section 4.3.3)."""

from collections.abc import Iterator, Sequence

from gateway.session.queue_memory import QueueMemory

MAXIMUM_INCOMING = 10_000
"""Packet identifiers of one session without their PUBREL; at most so many, or twice our Receive
Maximum where that is more: a client may leave one such window behind and fill another."""

IDENTIFIER_OVERHEAD = 100
"""Bytes of one of them: its number and its place."""


class Incoming:
    """The packet identifiers that wait for PUBREL, kept from one connection to the next.

    When there are too many, or the memory that sessions share is full, the next message is to be
    refused by whoever takes it; what is here stays.
    """

    __slots__ = ("_identifiers", "_memory", "maximum")

    def __init__(self, maximum: int, memory: QueueMemory) -> None:
        self.maximum = maximum
        self._memory = memory
        self._identifiers: dict[int, bool] = {}  # True for those of this connection

    def __len__(self) -> int:
        return len(self._identifiers)

    def __iter__(self) -> Iterator[int]:
        return iter(self._identifiers)

    def __contains__(self, packet_id: int) -> bool:
        return packet_id in self._identifiers

    @property
    def full(self) -> bool:
        """True while no further identifier may be added."""
        return len(self._identifiers) >= self.maximum or self._memory.full

    @property
    def room(self) -> int:
        """How many identifiers may be added."""
        memory = self._memory
        by_memory = -((memory.bytes - memory.maximum_bytes) // IDENTIFIER_OVERHEAD)
        return min(self.maximum - len(self._identifiers), by_memory)

    def begin(self) -> None:
        """Start on a new connection: nothing was published on it yet."""
        self._identifiers = dict.fromkeys(self._identifiers, False)

    def add(self, packet_id: int) -> bool:
        """Keep the identifier; return whether this connection had not published it before."""
        before = self._identifiers.get(packet_id)
        if before is None:
            self._memory.charge(IDENTIFIER_OVERHEAD)
        self._identifiers[packet_id] = True
        return not before

    def add_run(self, packet_ids: Sequence[int]) -> bool:
        """Keep identifiers that `room` allows; return False, with none kept, if one is here."""
        new = dict.fromkeys(packet_ids, True)
        if len(new) < len(packet_ids) or not self._identifiers.keys().isdisjoint(new):
            return False
        self._identifiers.update(new)
        self._memory.charge(IDENTIFIER_OVERHEAD * len(new))
        return True

    def remove_run(self, packet_ids: Sequence[int]) -> bool:
        """Forget identifiers; return False, with none forgotten, unless this connection had all."""
        identifiers = self._identifiers
        if len(set(packet_ids)) < len(packet_ids) or not all(map(identifiers.get, packet_ids)):
            return False
        for packet_id in packet_ids:
            del identifiers[packet_id]
        self._memory.charge(-IDENTIFIER_OVERHEAD * len(packet_ids))
        return True

    def remove(self, packet_id: int) -> bool | None:
        """Forget the identifier; return whether this connection published it, None if unknown."""
        published = self._identifiers.pop(packet_id, None)
        if published is not None:
            self._memory.charge(-IDENTIFIER_OVERHEAD)
        return published

    def clear(self) -> None:
        """Forget them all: the session has ended."""
        self._memory.charge(-IDENTIFIER_OVERHEAD * len(self._identifiers))
        self._identifiers = {}

"""What the broker needs of whatever makes messages durable, and a twin that keeps nothing."""

from typing import Protocol


class Durability(Protocol):
    """Rows that wait for a disk; the storage layer's writer fulfils this by its shape."""

    @property
    def pending_rows(self) -> int:
        """Rows gathered and not yet on disk; within a turn it only rises."""
        ...

    def mark(self) -> int:
        """Return the newest batch that is not on disk; 0 when no answer has to wait."""
        ...


class InMemory:
    """Durability of a broker without a disk: no answer waits."""

    pending_rows = 0

    def mark(self) -> int:
        """Return 0."""
        return 0

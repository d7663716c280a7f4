"""What the broker needs from the storage layer, and implementations that store nothing."""

from collections.abc import Callable, Iterable
from typing import Protocol

from gateway.access.listeners import Origin
from gateway.mqtt.output import Pending
from gateway.mqtt.packets import Will
from gateway.mqtt.publication import Publication
from gateway.session.journal import NO_JOURNAL, Journal
from gateway.session.span import Span

OnUndelivered = Callable[[list[Span], float, int], None]
"""Gets undelivered spans, monotonic seconds, wall milliseconds."""


class Durability(Protocol):
    """Rows that wait for a disk; the storage layer's writer has this shape."""

    @property
    def pending(self) -> Pending:
        """What was noted and answers wait for, always the same object."""
        ...

    def commit_number(self) -> int:
        """Return the newest batch that is not on disk; 0 if no answer must wait."""
        ...


class InMemory:
    """Durability of a broker without a disk: no answer waits."""

    pending = Pending()

    def commit_number(self) -> int:
        """Return 0."""
        return 0


class Store(Protocol):
    """Stores sessions, retained messages and wills across restarts."""

    on_undelivered: OnUndelivered
    """Called with spans of shared subscriptions that an ended session had only on disk."""

    @property
    def durable(self) -> bool:
        """False if nothing is stored, and queues are in memory only."""
        ...

    @property
    def deferred_commit(self) -> int:
        """The commit of the last deferred write; 0 while no answer waits for one."""
        ...

    def accepts(self, size: int) -> bool:
        """Return whether rows with so many bytes can be stored durably."""
        ...

    @property
    def elided_rows(self) -> int:
        """How many rows were never written because every receiver had acknowledged before."""
        ...

    def open(self, client_id: str, commit_within: float) -> Journal:
        """Return the journal of a new persistent session.

        Its notes about the session itself are written within `commit_within` seconds.
        """
        ...

    def store_retained(self, publication: Publication) -> None:
        """Store a retained message in place of its topic's last one; an empty one deletes that."""
        ...

    def forget_retained(self, topics: Iterable[str]) -> None:
        """Delete retained messages that have expired."""
        ...

    def store_will(self, client_id: str, username: str | None, origin: Origin, will: Will) -> None:
        """Store the will of a client with this origin, in place of its last one."""
        ...

    def postpone_will(self, client_id: str, due: int) -> None:
        """Store when the will is to be published: wall time, milliseconds since 1970."""
        ...

    def drop_will(self, client_id: str) -> None:
        """Delete a client's will, if it has one."""
        ...

    def sweep(self) -> None:
        """Delete what has expired and is only on disk."""
        ...

    def clock_set_forward(self, milliseconds: int, now: int) -> None:
        """Move all stored times forward by this much, but none beyond `now` (ms)."""
        ...


class StoresNothing:
    """The store of a broker whose sessions end with the process."""

    on_undelivered: OnUndelivered
    durable = False
    deferred_commit = 0
    elided_rows = 0

    def accepts(self, size: int) -> bool:  # noqa: ARG002 - keeps the name
        """Accept everything."""
        return True

    def open(self, client_id: str, commit_within: float) -> Journal:  # noqa: ARG002 - keeps the names
        """Return the journal that stores nothing."""
        return NO_JOURNAL

    def store_retained(self, publication: Publication) -> None:
        """Do nothing."""

    def forget_retained(self, topics: Iterable[str]) -> None:
        """Do nothing."""

    def store_will(self, client_id: str, username: str | None, origin: Origin, will: Will) -> None:
        """Do nothing."""

    def postpone_will(self, client_id: str, due: int) -> None:
        """Do nothing."""

    def drop_will(self, client_id: str) -> None:
        """Do nothing."""

    def sweep(self) -> None:
        """Do nothing."""

    def clock_set_forward(self, milliseconds: int, now: int) -> None:
        """Do nothing."""

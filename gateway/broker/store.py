"""What the broker needs of whatever makes messages durable, and twins that keep nothing."""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from gateway.mqtt.message import Message
from gateway.mqtt.packets import Will
from gateway.mqtt.plain_message import PlainMessage
from gateway.session.delivery import SharedDelivery
from gateway.session.journal import NO_JOURNAL, Journal

LeftOver = Callable[[list[SharedDelivery], float, int], None]
"""Gets deliveries that nobody waits for any more, monotonic seconds, wall milliseconds."""


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


class Store(Protocol):
    """Keeps sessions, retained messages and wills from one run of the gateway to the next."""

    on_left_over: LeftOver
    """Called with deliveries of shared subscriptions that an ended session had on disk alone."""

    @property
    def keeps(self) -> bool:
        """False if nothing is kept, and queues are in memory alone."""
        ...

    @property
    def changes(self) -> int:
        """How many changes that answers wait for were noted; it only rises."""
        ...

    @property
    def lent(self) -> int:
        """How many deliveries were noted that answers wait for with a pledge; it only rises."""
        ...

    @property
    def lent_mark(self) -> int:
        """The mark of an answer that waits for what was lent last."""
        ...

    @property
    def full(self) -> bool:
        """True while nothing more can be promised to be kept."""
        ...

    @property
    def elided_rows(self) -> int:
        """How many rows were never written because everyone had acknowledged before."""
        ...

    def open(self, client_id: str, within: float) -> Journal:
        """Return the journal of a new persistent session.

        What it notes of the session itself is on its way to disk `within` seconds.
        """
        ...

    def keep_retained(self, message: Message) -> None:
        """Keep a retained message in place of its topic's last one; an empty one deletes that."""
        ...

    def keep_retained_run(self, messages: Sequence[PlainMessage]) -> None:
        """Do that with messages of one origin, none of which is empty, nor of a `$SYS` topic."""
        ...

    def forget_retained(self, topics: Iterable[str]) -> None:
        """Forget retained messages that have expired."""
        ...

    def keep_will(self, client_id: str, username: str | None, will: Will) -> None:
        """Keep a client's will in place of its last one."""
        ...

    def postpone_will(self, client_id: str, due: int) -> None:
        """Note when the will is to be published: wall time, milliseconds since 1970."""
        ...

    def drop_will(self, client_id: str) -> None:
        """Forget a client's will, if it has one."""
        ...

    def sweep(self) -> None:
        """Give up what has expired and is on disk alone."""
        ...

    def clock_set_forward(self, milliseconds: int) -> None:
        """Count all times that are kept from so much later."""
        ...


class KeepsNothing:
    """The store of a broker whose sessions end with the process."""

    on_left_over: LeftOver
    keeps = False
    changes = 0
    lent = 0
    lent_mark = 0
    full = False
    elided_rows = 0

    def open(self, client_id: str, within: float) -> Journal:  # noqa: ARG002 - keeps the names
        """Return the journal that notes nothing."""
        return NO_JOURNAL

    def keep_retained(self, message: Message) -> None:
        """Do nothing."""

    def keep_retained_run(self, messages: Sequence[PlainMessage]) -> None:
        """Do nothing."""

    def forget_retained(self, topics: Iterable[str]) -> None:
        """Do nothing."""

    def keep_will(self, client_id: str, username: str | None, will: Will) -> None:
        """Do nothing."""

    def postpone_will(self, client_id: str, due: int) -> None:
        """Do nothing."""

    def drop_will(self, client_id: str) -> None:
        """Do nothing."""

    def sweep(self) -> None:
        """Do nothing."""

    def clock_set_forward(self, milliseconds: int) -> None:
        """Do nothing."""

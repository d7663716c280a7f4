"""Messages of a run that wait for one session, and are written, read and sent as one."""

from collections.abc import Sequence
from typing import Protocol

from gateway.session.delivery import Delivery
from gateway.session.message_run import MessageRun
from gateway.session.queue_memory import DELIVERY_OVERHEAD

FEW = 4
"""Messages below which each waits by itself: a run costs as much as so many of them."""

MOST = 256
"""Messages of the longest run that waits as one: a quarter of a window."""


class RunRow(Protocol):
    """Where a session's journal keeps the messages of a run together.

    Each has a place of its own in the journal, as single deliveries have; they are consecutive.
    """

    @property
    def batch(self) -> int:
        """The batch that writes it; 0 before."""
        ...

    @property
    def last(self) -> int:
        """The place of the last message that it was written with, which may be gone."""
        ...

    def done(self, place: int, count: int) -> None:
        """Forget so many messages from this place on: they were acknowledged, or given up."""
        ...

    def opened(self, place: int, deliveries: Sequence[Delivery]) -> None:
        """Let messages from this place on go on as these; give each its place and its bytes."""
        ...


class WaitingRun:
    """QoS 1 messages that one session is owed, from `place` on; part of a `row` of its journal.

    `size` is the bytes that they take in memory, `kept` on disk, both counted as if each of them
    waited by itself.
    """

    __slots__ = ("count", "kept", "place", "row", "run", "size")

    qos = 1

    def __init__(self, run: MessageRun, place: int, row: RunRow, overhead: int) -> None:
        """Take all of a run; of the disk each takes `overhead` more bytes than of memory."""
        self.run = run
        self.place = place
        self.row = row
        self.count = run.packets.count
        size = run.total_size
        self.size = size + self.count * DELIVERY_OVERHEAD
        self.kept = size + self.count * overhead

    @property
    def batch(self) -> int:
        """The batch that wrote it; 0 before."""
        return self.row.batch

    @property
    def last(self) -> int:
        """The place up to which nothing stands that is not of its row."""
        return self.row.last

    def expired(self, _now: float) -> bool:
        """Return False: messages without properties do not expire."""
        return False

    def split(self, count: int) -> tuple["WaitingRun", "WaitingRun"]:
        """Return the first so many, and the rest."""
        run, total = self.run, self.count
        overhead = (self.kept - self.size) // total + DELIVERY_OVERHEAD
        return (
            WaitingRun(run.part(0, count), self.place, self.row, overhead),
            WaitingRun(run.part(count, total), self.place + count, self.row, overhead),
        )

    def open(self) -> list[Delivery]:
        """Return each as a delivery of its own."""
        deliveries = [Delivery(message, self.qos) for message in self.run.messages]
        self.row.opened(self.place, deliveries)
        return deliveries


Waiting = Delivery | WaitingRun
"""What stands in a queue."""

"""Lets stores announce changes that they hold in memory until a batch is closed."""

from collections.abc import Callable
from typing import Protocol

from gateway.mqtt.output import Pending
from gateway.storage.engine.wake_up import WakeUp

Add = Callable[[str, tuple[object, ...]], int]
"""`Writer.add`, as stores use it."""

AddRows = Callable[[str, list[tuple[object, ...]], int], None]
"""`Writer.add_rows`, as stores use it."""

PUT_OFF = 1.0
"""Seconds that a change may stay in memory if its loss only causes a repetition."""


class BatchWriter(Protocol):
    """What a store needs of `storage.writer.Writer`."""

    batch: int
    durable: bool
    commit_delay: float
    elided_rows: int
    pending: Pending
    wake_up: WakeUp

    def accepts(self, size: int) -> bool:
        """Return whether rows with so many bytes may be added."""
        ...

    def add(self, statement: str, row: tuple[object, ...]) -> int:
        """Add a row."""
        ...

    def add_rows(self, statement: str, rows: list[tuple[object, ...]], size: int) -> None:
        """Add rows with this many bytes in texts and blobs."""
        ...

    def schedule_commit(self, commit_within: float) -> None:
        """Announce rows."""
        ...

    def hand_over(self) -> None:
        """Start to commit if something is due."""
        ...

    def commit_number(self) -> int:
        """Return the newest batch that is not on disk."""
        ...


class PendingBatch:
    """Announces changes to the writer, and counts them in `Writer.pending`.

    `deferred_commit` is the batch with the last deferred write.
    """

    __slots__ = ("_next_commit", "_pending", "deferred_commit", "writer")

    def __init__(self, writer: BatchWriter) -> None:
        self._pending = writer.pending
        self.deferred_commit = 0
        self._next_commit = 0  # the batch to begin as soon as the one before it is on disk
        self.writer = writer

    def changed(self, commit_within: float = 0.0) -> None:
        """Announce a change whose commit begins at most `commit_within` seconds from now."""
        self._pending.changes += 1
        self.writer.schedule_commit(commit_within)

    def defer(self) -> None:
        """Announce a deferred write: it is for the batch after the pending one."""
        self._pending.deferred += 1
        self.deferred_commit = self._next_commit = self.writer.batch + 1

    def go_on(self) -> None:
        """Announce that more of the announced changes are for the batch after this one."""
        self._next_commit = self.writer.batch + 1

    def defer_to_batch(self) -> None:
        """Announce a deferred write whose batch the caller begins in time.

        It is in the pending batch at the latest.
        """
        self._pending.deferred += 1
        self.deferred_commit = max(self.deferred_commit, self.writer.batch)

    def committed(self, batch: int) -> None:
        """Report a batch as on disk."""
        if batch < self._next_commit:
            self.writer.schedule_commit(self.writer.commit_delay / 2)

    def put_off(self) -> None:
        """Announce a change that may be lost."""
        self.writer.schedule_commit(PUT_OFF)

    def commit_number(self) -> int:
        """Make all pending changes due now; return the batch with the last of them."""
        number = self.writer.commit_number()
        if number == self.writer.batch:
            self.writer.schedule_commit(0.0)
        return number

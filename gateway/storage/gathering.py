"""How stores announce changes that they hold in memory until a batch is closed."""

from collections.abc import Callable
from typing import Protocol

from gateway.storage.wake_up import WakeUp

Add = Callable[[str, tuple[object, ...]], int]
"""`Writer.add`, as stores use it."""

AddRows = Callable[[str, list[tuple[object, ...]], int], None]
"""`Writer.add_rows`, as stores use it."""

PUT_OFF = 1.0
"""Seconds that a change may stay in memory whose loss only makes something come again."""


class BatchWriter(Protocol):
    """What a store needs of `storage.writer.Writer`."""

    batch: int
    commit_delay: float
    elided_rows: int
    wake_up: WakeUp

    @property
    def full(self) -> bool:
        """True while nothing more is to be gathered."""
        ...

    def add(self, statement: str, row: tuple[object, ...]) -> int:
        """Gather a row."""
        ...

    def add_rows(self, statement: str, rows: list[tuple[object, ...]], size: int) -> None:
        """Gather rows that hold so many bytes in texts and blobs."""
        ...

    def want(self, within: float) -> None:
        """Announce rows."""
        ...

    def hand_over(self) -> None:
        """Start to commit if something is due."""
        ...

    def mark(self) -> int:
        """Return the newest batch that is not on disk."""
        ...


class Gathering:
    """Announces changes to the writer; `changes` counts those that answers wait for.

    `lent` counts those that they wait for unless somebody else makes them needless before, and
    `lent_mark` is the batch that brings the last of these to disk.
    """

    __slots__ = ("_lent_within", "changes", "lent", "lent_mark", "writer")

    def __init__(self, writer: BatchWriter) -> None:
        self.changes = 0
        self.lent = 0
        self.lent_mark = 0
        self._lent_within = 0.0  # the shortest delay that was asked for with this mark
        self.writer = writer

    def firm(self, within: float = 0.0) -> None:
        """Announce a change whose commit begins at most `within` seconds from now."""
        self.changes += 1
        self.writer.want(within)

    def lend(self, within: float) -> None:
        """Announce a change that may become needless in the writer's commit delay.

        It goes with the batch after the one that gathers now: each closes after half of the delay,
        so that what came last has a chance, too.
        """
        self.lent += 1
        mark = self.writer.batch + 1
        if mark == self.lent_mark and within >= self._lent_within:
            return  # announced before
        self.lent_mark, self._lent_within = mark, within
        half = self.writer.commit_delay / 2
        self.writer.want(max(within - half, half))

    def committed(self, batch: int) -> None:
        """Announce the batch that answers may wait for, if it is not this one."""
        if batch < self.lent_mark:
            self.writer.want(self.writer.commit_delay / 2)

    def put_off(self) -> None:
        """Announce a change that may be lost."""
        self.writer.want(PUT_OFF)

    def mark(self) -> int:
        """Make everything gathered due now; return the batch that it is in, or was."""
        mark = self.writer.mark()
        if mark == self.writer.batch:
            self.writer.want(0.0)
        return mark


def runs(numbers: list[int]) -> list[tuple[int, int]]:
    """Return the first and last of each run of consecutive numbers, rising."""
    found: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if found and number == found[-1][1] + 1:
            found[-1] = found[-1][0], number
        else:
            found.append((number, number))
    return found

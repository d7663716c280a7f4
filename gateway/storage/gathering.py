"""How stores announce changes that they hold in memory until a batch is closed."""

from typing import Protocol

PUT_OFF = 1.0
"""Seconds that a change may stay in memory whose loss only makes something come again."""


class BatchWriter(Protocol):
    """What a store needs of `storage.writer.Writer`."""

    batch: int

    @property
    def full(self) -> bool:
        """True while nothing more is to be gathered."""
        ...

    def add(self, statement: str, row: tuple[object, ...]) -> int:
        """Gather a row."""
        ...

    def want(self, within: float) -> None:
        """Announce rows."""
        ...

    def mark(self) -> int:
        """Return the newest batch that is not on disk."""
        ...


class Gathering:
    """Announces changes to the writer; `changes` counts those that answers wait for."""

    __slots__ = ("changes", "writer")

    def __init__(self, writer: BatchWriter) -> None:
        self.changes = 0
        self.writer = writer

    def firm(self, within: float = 0.0) -> None:
        """Announce a change whose commit begins at most `within` seconds from now."""
        self.changes += 1
        self.writer.want(within)

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

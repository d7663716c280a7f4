"""Packets that stand one behind the other, as a receiver of them all takes them."""

from collections.abc import Sequence
from typing import Final

NOT_LISTED: Final[list[int]] = []
"""Stands for the lists of a run whose packets are all as long."""


class PacketRun:
    """Packets one behind the other: their bytes, and where each and its body start there.

    Where all are as long, that is `size`, and their bodies start `body` bytes behind their own
    start; otherwise `size` is 0.
    """

    __slots__ = ("_bodies", "_starts", "body", "count", "data", "size")

    def __init__(self, data: bytes, size: int, body: int) -> None:
        self.data = data
        self.size = size
        self.body = body
        self.count = len(data) // size
        self._starts: list[int] = NOT_LISTED  # one by one would be a tenth of all the work
        self._bodies: list[int] = NOT_LISTED

    def differ(self, data: bytes, starts: list[int], bodies: list[int]) -> None:
        """Be these packets, which are not all as long."""
        self.data, self._starts, self._bodies = data, starts, bodies
        self.count = len(starts)
        self.size = 0

    @property
    def starts(self) -> Sequence[int]:
        """Where each starts."""
        return range(0, len(self.data), self.size) if self.size else self._starts

    @property
    def bodies(self) -> Sequence[int]:
        """Where the body of each starts."""
        return range(self.body, len(self.data), self.size) if self.size else self._bodies

    def bytes_behind(self, place: int) -> int:
        """Return how many bytes of all packets stand at `place` of their bodies, or behind it."""
        heads = self.body * self.count if self.size else sum(self._bodies) - sum(self._starts)
        return len(self.data) - heads - self.count * place

    def part(self, first: int, end: int) -> "PacketRun":
        """Return those with numbers from `first` on, up to `end`, which is not among them."""
        if self.size:
            return PacketRun(self.data[first * self.size : end * self.size], self.size, self.body)
        start = self._starts[first]
        data = self.data[start : self._starts[end] if end < self.count else len(self.data)]
        starts = [place - start for place in self._starts[first:end]]
        return uneven_run(data, starts, [place - start for place in self._bodies[first:end]])


def uneven_run(data: bytes, starts: list[int], bodies: list[int]) -> PacketRun:
    """Return packets that are not all as long."""
    run = PacketRun(data, len(data), 0)
    run.differ(data, starts, bodies)
    return run

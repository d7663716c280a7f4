"""Delays between attempts to connect: each longer than the last, with random jitter."""

from collections.abc import Callable


class Backoff:
    """Exponential delays with jitter: a fleet that lost its broker must not return at once.

    The n-th delay is evenly distributed between half and all of `first` * 2 ** n seconds, at most
    `longest`. `random` returns numbers from 0 to 1.
    """

    __slots__ = ("_first", "_longest", "_next", "_random")

    def __init__(self, first: float, longest: float, random: Callable[[], float]) -> None:
        self._first = first
        self._longest = longest
        self._random = random
        self._next = first

    def delay(self) -> float:
        """Return the seconds to wait now; the following delay is twice as long."""
        seconds = self._next * (1 + self._random()) / 2
        self._next = min(2 * self._next, self._longest)
        return seconds

    def reset(self) -> None:
        """Start again with the shortest delay, after a success."""
        self._next = self._first

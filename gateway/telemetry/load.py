"""Load averages, computed as Mosquitto does."""

import math

MINUTES = (1, 5, 15)
"""Minutes of the averages."""


class LoadAverage:
    """The rise of a count per minute, as exponential averages over 1, 5 and 15 minutes.

    `values` are the averages in the order of MINUTES, 0 at the beginning.
    """

    __slots__ = ("_last", "values")

    def __init__(self) -> None:
        self._last = 0
        self.values = [0.0] * len(MINUTES)

    def update(self, count: int, seconds: float) -> None:
        """Update with the count `seconds` after the last update, which must be more than 0."""
        rate = (count - self._last) * 60 / seconds
        self._last = count
        for index, minutes in enumerate(MINUTES):
            weight = math.exp(-seconds / (60 * minutes))
            self.values[index] = rate + weight * (self.values[index] - rate)

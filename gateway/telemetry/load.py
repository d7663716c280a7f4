"""Load averages, computed as Mosquitto computes those that its users watch."""

import math

MINUTES = (1, 5, 15)
"""What the averages look back on."""


class LoadAverage:
    """How much a count rises in a minute: exponential averages over 1, 5 and 15 minutes.

    `values` are the averages in the order of MINUTES, 0 at the beginning.
    """

    __slots__ = ("_last", "values")

    def __init__(self) -> None:
        self._last = 0
        self.values = [0.0] * len(MINUTES)

    def update(self, count: int, seconds: float) -> None:
        """Take what the count is `seconds` after the last update, which is more than 0."""
        rate = (count - self._last) * 60 / seconds
        self._last = count
        for place, minutes in enumerate(MINUTES):
            weight = math.exp(-seconds / (60 * minutes))
            self.values[place] = rate + weight * (self.values[place] - rate)

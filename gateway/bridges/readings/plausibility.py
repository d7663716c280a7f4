"""Whether a reading is plausible: an implausible one is marked, and still published."""

import math

from gateway.bridges.readings.reading import Reading
from gateway.bridges.readings.registry import Kind, Quantity, instance_of, usual_value

OUT_OF_RANGE = "out_of_range"
"""Outside the limits of the quantity."""

FELL = "fell"
"""A total below the one before: the meter was reset, or one of the two values is wrong."""

JUMPED = "jumped"
"""A total that rose by more than is possible between two readings."""

SERIES_MAX = 10_000
"""Series whose last value is stored; of others falls and jumps are not noticed."""


class Plausibility:
    """Checks readings, each series in the order of its times."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[int, float]] = {}

    def quality(self, reading: Reading) -> str:
        """Return the word for an implausible reading, empty for a plausible one."""
        quantity, value = instance_of(reading.quantity), reading.value
        if quantity is None or isinstance(value, bool | str):
            return ""
        usual = usual_value(quantity, value, reading.unit)
        if usual is None:
            return ""
        change = ""
        if quantity.kind is Kind.TOTAL:
            change = self._change(reading, quantity, usual)
        if not quantity.low <= usual <= quantity.high:
            return OUT_OF_RANGE
        return change

    def _change(self, reading: Reading, quantity: Quantity, value: float) -> str:
        """Return the word for an implausible change of a total."""
        time, before = self._last.get(reading.topic, (0, math.nan))
        if reading.time < time:
            return ""
        if time or len(self._last) < SERIES_MAX:
            self._last[reading.topic] = (reading.time, value)
        if value < before:
            return FELL
        return JUMPED if value - before > quantity.jump else ""

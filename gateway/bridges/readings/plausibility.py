"""Whether a reading can be right: what cannot is marked, and published all the same."""

import math

from gateway.bridges.readings.reading import Reading
from gateway.bridges.readings.registry import Kind, Quantity, instance_of, usual_value

OUT_OF_RANGE = "out_of_range"
"""Beyond what the quantity can be."""

FELL = "fell"
"""A total that is below the one before: the meter begins anew, or one of the two is wrong."""

JUMPED = "jumped"
"""A total that rose by more than one does between two readings."""

SERIES_MAX = 10_000
"""Series whose last value is known; of the others falls and jumps are not noticed."""


class Plausibility:
    """Judges readings, each series in the order of its times."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[int, float]] = {}

    def quality(self, reading: Reading) -> str:
        """Return the word for what is wrong with a reading, empty for nothing."""
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
        """Return what is wrong with how far a total moved."""
        time, before = self._last.get(reading.topic, (0, math.nan))
        if reading.time < time:
            return ""
        if time or len(self._last) < SERIES_MAX:
            self._last[reading.topic] = (reading.time, value)
        if value < before:
            return FELL
        return JUMPED if value - before > quantity.jump else ""

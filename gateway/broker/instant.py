"""The time at which a turn handles its packets; the core reads no clock of its own."""

from typing import NamedTuple


class Instant(NamedTuple):
    """Monotonic seconds, what deadlines count in, and wall time in ms since 1970."""

    monotonic: float
    wall: int

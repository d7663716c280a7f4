"""The time at which a turn handles its packets; the core reads no clock of its own."""


class Instant:
    """Monotonic seconds, what deadlines count in, and wall time in ms since 1970; never changed."""

    __slots__ = ("monotonic", "wall")

    def __init__(self, monotonic: float, wall: int) -> None:
        self.monotonic = monotonic
        self.wall = wall

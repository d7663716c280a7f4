"""The two clocks of a gateway in one object, so that tests can put their own in its place."""

import time


class Clock:
    """Monotonic time for spans and deadlines, wall time for what is written down."""

    __slots__ = ()

    def monotonic(self) -> float:
        """Return seconds since some fixed moment; never goes back."""
        return time.monotonic()

    def wall_ms(self) -> int:
        """Return milliseconds since 1970-01-01T00:00:00Z; jumps when the system clock is set."""
        return time.time_ns() // 1_000_000

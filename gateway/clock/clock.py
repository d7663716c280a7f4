"""The clocks of a gateway in one object, which tests can replace."""

import time

from gateway.clock.kernel import Synchronization, boot_id, synchronization


class Clock:
    """Monotonic time for spans and deadlines, wall time for records."""

    __slots__ = ()

    monotonic = staticmethod(time.monotonic)
    """Return seconds since some fixed moment; never goes back."""

    def nanoseconds(self) -> int:
        """Return nanoseconds since some fixed moment, for short spans."""
        return time.perf_counter_ns()

    wall_ns = staticmethod(time.time_ns)
    """Return nanoseconds since 1970-01-01T00:00:00Z; jumps when the system clock is set."""

    def wall_ms(self) -> int:
        """Return `wall_ns` as milliseconds."""
        return self.wall_ns() // 1_000_000

    def uptime_ms(self) -> int:
        """Return milliseconds since the board was started, time in suspension included."""
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000

    def boot_id(self) -> str:
        """Return the name of this start of the board; every start has another."""
        return boot_id()

    def synchronization(self) -> Synchronization:
        """Return what the kernel knows of the wall clock's accuracy."""
        return synchronization()

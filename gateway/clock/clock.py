"""The clocks of a gateway in one object, so that tests can put their own in its place."""

import time

from gateway.clock.kernel import Synchronization, boot_id, synchronization


class Clock:
    """Monotonic time for spans and deadlines, wall time for what is written down."""

    __slots__ = ()

    monotonic = staticmethod(time.monotonic)
    """Return seconds since some fixed moment; never goes back."""

    def nanoseconds(self) -> int:
        """Return nanoseconds since some fixed moment, for what is too short for seconds."""
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
        """Return what names this start of the board; every start has another."""
        return boot_id()

    def synchronization(self) -> Synchronization:
        """Return what the kernel knows of how right the wall time is."""
        return synchronization()

"""A clock that a test moves, sets and synchronizes."""

from gateway.clock import Clock, Synchronization

NOW = 1_763_740_000_000
"""Milliseconds: 2025-11-21 15:46:40 UTC."""


class ManualClock(Clock):
    """Stands still until `step`; `set_wall` is what a person or an NTP client does."""

    def __init__(self, wall_ms: int = NOW, uptime_ms: int = 20_000) -> None:
        self.now_ms = uptime_ms
        self.wall_offset = wall_ms - uptime_ms
        self.boot = "6145d69b-cc4a-469e-803a-c0e88e6f589f"
        self.state = Synchronization(synchronized=False)

    def monotonic(self) -> float:
        return self.now_ms / 1000

    def wall_ns(self) -> int:
        return (self.now_ms + self.wall_offset) * 1_000_000

    def uptime_ms(self) -> int:
        return self.now_ms

    def boot_id(self) -> str:
        return self.boot

    def synchronization(self) -> Synchronization:
        return self.state

    def step(self, seconds: float) -> None:
        """Let time pass."""
        self.now_ms += round(seconds * 1000)

    def set_wall(self, wall_ms: int) -> None:
        """Set the wall clock."""
        self.wall_offset = wall_ms - self.now_ms

    def synchronize(self, wall_ms: int, error_ms: int = 10) -> None:
        """Set the wall clock from outside; it is kept right from now on."""
        self.set_wall(wall_ms)
        self.state = Synchronization(synchronized=True, error_ms=error_ms)


class SetClock(Clock):
    """The computer's clock, but for a wall time of the test's own."""

    def __init__(self, wall_ms: int) -> None:
        self.difference = wall_ms - super().wall_ns() // 1_000_000
        self.state = Synchronization(synchronized=False)

    def wall_ns(self) -> int:
        return super().wall_ns() + self.difference * 1_000_000

    def synchronization(self) -> Synchronization:
        return self.state

    def synchronize(self) -> None:
        """Learn the right time."""
        self.difference = 0
        self.state = Synchronization(synchronized=True, error_ms=10)

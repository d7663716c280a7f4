"""A board's clock that a test sets, and whose board may be switched off and on."""

from gateway.clock import Clock, Synchronization

NOW = 1_763_740_000
"""Seconds since 1970."""

FIRST_BOOT, SECOND_BOOT = "6145d69b-cc4a-469e-803a-c0e88e6f589f", "77777777-cc4a-469e-803a-c0e8"


class BoardClock(Clock):
    """A board's clock that a test sets, and whose board may be switched off and on."""

    def __init__(self, wall: float = NOW, *, synchronized: bool = True) -> None:
        self.boot = FIRST_BOOT
        self.synchronized = synchronized
        self.since_boot = 0.0
        self.ahead = wall - super().monotonic()

    def monotonic(self) -> float:
        return super().monotonic() - self.since_boot

    def wall_ns(self) -> int:
        return round(1000 * (super().monotonic() + self.ahead)) * 1_000_000

    def boot_id(self) -> str:
        return self.boot

    def synchronization(self) -> Synchronization:
        return Synchronization(synchronized=self.synchronized)

    def set_by(self, seconds: float) -> None:
        """Set the wall clock forward, or back."""
        self.ahead += seconds

    def pass_time(self, seconds: float) -> None:
        """Let both clocks go on by so many seconds."""
        self.since_boot -= seconds
        self.ahead += seconds

    def reboot(self) -> None:
        """Switch the board off and on again; a clock of its own goes on meanwhile."""
        self.boot = SECOND_BOOT
        self.since_boot = super().monotonic() - 5

"""What a board can do besides measuring: show which one it is, and start anew."""

import machine

TYPE_CHECKING = False  # MicroPython has no typing module
if TYPE_CHECKING:
    from .loop import Clock

BLINK_MS = 125


class Board:
    """A board with an LED at the pin `led`, or None for a board without one."""

    def __init__(self, led: "int | str | None", clock: "Clock") -> None:
        self._led = None if led is None else machine.Pin(led, machine.Pin.OUT)
        self._clock = clock
        self._blinks_until = 0

    def identify(self, seconds: int) -> None:
        """Blink for so many seconds; ValueError where there is nothing to blink with."""
        if self._led is None:
            raise ValueError("LED")
        self._blinks_until = self._clock.ms() + 1000 * seconds

    def blink(self) -> None:
        """Switch the LED on or off, as its time has come."""
        if self._led is not None and self._blinks_until:
            left = max(self._blinks_until - self._clock.ms(), 0)
            self._led.value(left // BLINK_MS % 2)
            if not left:
                self._blinks_until = 0

    def restart(self) -> None:
        """Start anew, with another boot id."""
        machine.reset()

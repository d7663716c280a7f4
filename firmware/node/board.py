"""What a board can do besides measuring: show how it is, be watched over, and start anew."""

import machine

from .light import IDENTIFYING, is_lit

TYPE_CHECKING = False  # MicroPython has no typing module
if TYPE_CHECKING:
    from collections.abc import Callable

    from .loop import Clock


class Board:
    """A board with an LED at the pin `led`, or None for a board without one.

    After `watchdog_ms` without a call of `feed` its hardware watchdog, if it has one, resets the
    board, and nothing can stop that again; 0 leaves the watchdog alone. A pin that the board does
    not have is no LED. `save` is called before the board starts anew.
    """

    def __init__(self, led: "int | str | None", clock: "Clock", watchdog_ms: int = 0) -> None:
        self._led = None
        if led is not None:
            try:
                self._led = machine.Pin(led, machine.Pin.OUT)
            except (ValueError, TypeError):
                pass
        self._clock = clock
        self._identify_until = 0
        self.save: Callable[[], None] | None = None
        self._watchdog = None
        if watchdog_ms and hasattr(machine, "WDT"):
            self._watchdog = machine.WDT(timeout=watchdog_ms)

    def feed(self) -> None:
        """Tell the watchdog that the program is alive."""
        if self._watchdog is not None:
            self._watchdog.feed()

    def identify(self, seconds: int) -> None:
        """Blink for so many seconds; ValueError where there is nothing to blink with."""
        if self._led is None:
            raise ValueError("LED")
        self._identify_until = self._clock.ms() + 1000 * seconds

    def show(self, state: int) -> None:
        """Switch the LED on or off, as a state of node/light.py wants it at this time."""
        if self._led is None:
            return
        now = self._clock.ms()
        self._led.value(is_lit(IDENTIFYING if now < self._identify_until else state, now))

    def restart(self) -> None:
        """Start anew, with another boot id."""
        if self.save is not None:
            self.save()
        machine.reset()

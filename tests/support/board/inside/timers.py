"""The board's timers: threads, which reset it or call back."""

import time

from ending import reset

TYPE_CHECKING = False  # MicroPython has no typing module
if TYPE_CHECKING:
    from collections.abc import Callable


class Timer:
    """One shot, in a thread."""

    ONE_SHOT = 0
    PERIODIC = 1

    def __init__(self, _number: int = -1) -> None:
        self._round = 0

    def init(self, *, mode: int, period: int, callback: "Callable[[Timer], None]") -> None:
        import _thread

        self._round += 1
        _thread.start_new_thread(self._run, (self._round, mode, period, callback))

    def deinit(self) -> None:
        self._round += 1

    def _run(
        self, number: int, mode: int, period: int, callback: "Callable[[Timer], None]"
    ) -> None:
        while number == self._round:
            time.sleep_ms(period)
            if number == self._round:
                callback(self)
            if mode == Timer.ONE_SHOT:
                return


class WDT:
    """Resets the board where nothing feeds it; like a board's, it is one for all, and stays."""

    _fed = 0
    _timeout = 0

    def __init__(self, _number: int = 0, timeout: int = 5000) -> None:
        import _thread

        if not WDT._timeout:
            _thread.start_new_thread(self._watch, ())
        WDT._timeout = timeout
        self.feed()

    def feed(self) -> None:
        WDT._fed = time.ticks_ms()

    def _watch(self) -> None:
        while True:
            time.sleep_ms(100)
            if time.ticks_diff(time.ticks_ms(), WDT._fed) > WDT._timeout:
                reset()

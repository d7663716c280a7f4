"""Whether the event loop turns: how late a timer of its own comes."""

import asyncio

INTERVAL = 0.5
"""Seconds between two beats."""

STILL = 5.0
"""Seconds without a beat from which the loop stood still; systemd's watchdog waits for 30."""

REMEMBERED = 60.0
"""Seconds for which that is told: who asks once a minute hears of it."""


class Heartbeat:
    """Beats on the loop, from `start` to `stop`; `late` says how long it last stood still."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._stood_still = 0.0  # seconds
        self._ended = 0.0

    @property
    def late(self) -> float:
        """Seconds for which the loop stood still in the last minute, 0.0 if it turned."""
        recent = self._loop.time() - self._ended < REMEMBERED
        return self._stood_still if recent else 0.0

    def start(self) -> None:
        """Beat from now on."""
        self._due = self._loop.time() + INTERVAL
        self._timer = self._loop.call_at(self._due, self._beat)

    def stop(self) -> None:
        """Beat no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _beat(self) -> None:
        now = self._loop.time()
        if now - self._due >= STILL:
            self._stood_still, self._ended = now - self._due, now
        self.start()

"""The health of the gateway as one line of text, and a timer that detects a blocked event loop."""

import asyncio

from gateway.storage.engine.writer import Writer

INTERVAL = 0.5
"""Seconds between two timers."""

STILL = 5.0
"""Seconds without a timer after which the loop counts as blocked; systemd's watchdog waits 30."""

REMEMBERED = 60.0
"""Seconds for which a block is reported, so that a scrape once a minute sees it."""


class Heartbeat:
    """Runs a timer from `start` to `stop`; `late` is how long the loop was last blocked."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._stood_still = 0.0  # seconds
        self._ended = 0.0

    @property
    def late(self) -> float:
        """Longest block of the loop in the last minute in seconds, 0.0 for none."""
        recent = self._loop.time() - self._ended < REMEMBERED
        return self._stood_still if recent else 0.0

    def start(self) -> None:
        """Start the timer."""
        self._due = self._loop.time() + INTERVAL
        self._timer = self._loop.call_at(self._due, self._beat)

    def stop(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()

    def _beat(self) -> None:
        now = self._loop.time()
        if now - self._due >= STILL:
            self._stood_still, self._ended = now - self._due, now
        self.start()


def trouble(writer: Writer, heartbeat: Heartbeat) -> str:
    """Return why the gateway is unhealthy, an empty text if it is healthy.

    A gateway with a blocked loop gives no answer at all: the client needs a time-out.
    """
    reason = refusing(writer)
    if reason:
        return reason
    if heartbeat.late:
        return f"the event loop stood still for {heartbeat.late:.1f} s within the last minute"
    return ""


def refusing(writer: Writer) -> str:
    """Return why publishers are refused, an empty text if they are not."""
    if writer.refuses:
        return f"{writer.refuses}: publishers are refused"
    if writer.attempts.failing:
        return "the database cannot be written: publishers are refused"
    if writer.attempts.disk_full:
        return "the disk is full: publishers are refused"
    if writer.full:
        return f"{writer.pending_rows} rows wait for the disk: publishers are refused"
    return ""

"""The alarm for clients with full queues: which ones lose messages."""

import logging

from gateway.app.parts import Run
from gateway.broker.broker import Broker
from gateway.session.queue.memory import MAXIMUM_NAMED

logger = logging.getLogger(__name__)

CHECK_SECONDS = 1.0
"""Seconds between two checks."""

LINE_SECONDS = 60.0
"""Seconds between two log lines while the alarm lasts."""

QUIET_SECONDS = 10.0
"""Seconds without a loss after which the alarm ends, once the named queues have capacity."""

NAMED = 5
"""Clients that the alarm names: those that lost most."""

SHOWN = 80
"""Characters of a client identifier that are shown."""

ALARM = "queue_full"


class FullQueues:
    """Reports when clients begin to lose acknowledged messages, and when that ends.

    `text` is the alarm's, "" while nothing is lost.
    """

    def __init__(self, run: Run, broker: Broker) -> None:
        self.text = ""
        self._run = run
        self._broker = broker
        self._memory = broker.queue_memory
        self._lost: dict[str, int] = {}  # messages, by client identifier; MAXIMUM_NAMED of them
        self._before: list[str] = []  # clients that the alarm names
        self._last = self._line = 0.0  # monotonic seconds of the last loss and the last log line

    def start(self) -> None:
        """Check at each interval while the gateway runs."""
        self._run.every(CHECK_SECONDS, self.check)

    def check(self) -> None:
        """Raise, renew or end the alarm by what was dropped since the last check."""
        dropped, self._memory.dropped = self._memory.dropped, {}
        now = self._run.clock.monotonic()
        if dropped:
            self._last = now
            self._count(dropped)
            self._renew(now)
        elif self.text and now - self._last >= QUIET_SECONDS and not self._any_is_full():
            self._end()

    def _count(self, dropped: dict[str, int]) -> None:
        for client_id, count in dropped.items():
            if client_id in self._lost or len(self._lost) < MAXIMUM_NAMED:
                self._lost[client_id] = self._lost.get(client_id, 0) + count

    def _renew(self, now: float) -> None:
        named = sorted(self._lost, key=lambda each: (-self._lost[each], each))[:NAMED]
        begins = not self.text
        if begins or now - self._line >= LINE_SECONDS:
            self._line = now
            self._raise(named)
            logger.warning("%s", self.text)
        elif set(named) != set(self._before):
            self._raise(named)

    def _raise(self, named: list[str]) -> None:
        self._before = named
        names = ", ".join(f"{each[:SHOWN]!r} ({self._lost[each]:,})" for each in named)
        more = len(self._lost) - len(named)
        others = f" and {more:,} others" if more else ""
        self.text = f"messages are dropped for clients that do not fetch them: {names}{others}"
        self._run.alarm(ALARM, self.text)

    def _end(self) -> None:
        logger.warning(
            "queues have capacity again: meanwhile %d messages were dropped for %d clients",
            sum(self._lost.values()),
            len(self._lost),
        )
        self.text = ""
        self._lost = {}
        self._run.alarm(ALARM, "")

    def _any_is_full(self) -> bool:
        sessions = self._broker.sessions
        found = [sessions[each] for each in self._before if each in sessions]
        return any(session.queue.full for session in found)

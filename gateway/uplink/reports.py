"""What a gateway tells the fleet of itself, beside the data: kept until the fleet has it."""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from gateway.clock import Clock
from gateway.counters import Counters

logger = logging.getLogger(__name__)

MAX_IN_HAND = 8
"""Reports given to a destination and not taken yet; the next one waits for the first of them."""

REFUSED_SECONDS = 60.0
"""How long nothing is given after a refusal: a broker that says no is not asked all the time."""


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """One report: `kind` ends its topic and names its folder, `payload` is a line of JSON.

    `taken` is called once the fleet has it, and deletes what the report was made of.
    """

    kind: str
    payload: bytes
    taken: Callable[[], None]


class ReportSource(Protocol):
    """Makes reports of what is on disk."""

    async def next(self, largest: int) -> Report | None:
        """Return what was not reported yet, in at most `largest` bytes; None if nothing is due."""
        ...


class Reports:
    """Gives a destination the reports of all sources, each until it is taken.

    A destination asks `next` whenever it has room, sends the report with QoS 1 to
    `<prefix>/<gateway_id>/<kind>`, and says how it went with `taken` or `refused`. When a
    connection ends it calls `start_over`: whatever was not taken is given again.
    """

    def __init__(self, sources: Sequence[ReportSource], counters: Counters, clock: Clock) -> None:
        self._sources = sources
        self._counters = counters
        self._clock = clock
        self._in_hand: dict[Report, None] = {}
        self._again: deque[Report] = deque()
        self._held_until = 0.0
        self._codes_logged: set[int] = set()

    async def next(self, largest: int) -> Report | None:
        """Return a report to send now, None when there is none or enough are under way.

        Its payload has at most `largest` bytes, unless it was made for a destination that took
        more.
        """
        if len(self._in_hand) >= MAX_IN_HAND or self._clock.monotonic() < self._held_until:
            return None
        report = self._again.popleft() if self._again else await self._new(largest)
        if report is not None:
            self._in_hand[report] = None
        return report

    def taken(self, report: Report) -> None:
        """Forget a report that the fleet has."""
        if report in self._in_hand:
            del self._in_hand[report]
            self._counters.add(f"tidegate/{report.kind}/acknowledged")
            report.taken()

    def refused(self, report: Report, code: int) -> None:
        """Keep a report that the fleet did not take; try again after REFUSED_SECONDS."""
        if report not in self._in_hand:
            return
        del self._in_hand[report]
        self._again.append(report)
        self._counters.add(f"tidegate/{report.kind}/refused")
        self._held_until = self._clock.monotonic() + REFUSED_SECONDS
        if code not in self._codes_logged:
            self._codes_logged.add(code)
            logger.warning("the fleet takes no %s: 0x%02X; it is kept", report.kind, code)

    def start_over(self) -> None:
        """Take back what was given and neither taken nor refused: the connection ended."""
        self._again.extendleft(reversed(self._in_hand))
        self._in_hand.clear()
        self._held_until = 0.0

    async def _new(self, largest: int) -> Report | None:
        for source in self._sources:
            report = await source.next(largest)
            if report is not None:
                return report
        return None

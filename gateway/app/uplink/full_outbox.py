"""The alarm for an outbox that has no room: what the fleet will not get."""

import asyncio
import logging
from typing import TYPE_CHECKING

from gateway.config.when_full import CONSEQUENCES, WhenFull
from gateway.storage.outbox.outbox import Outbox

if TYPE_CHECKING:
    from gateway.app.gateway import Gateway

logger = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
"""Seconds between two looks at the counters."""

QUIET_SECONDS = 10.0
"""Seconds without a refusal after which an outbox with room is not full any more."""

ALARM = "outbox_full"


class FullOutbox:
    """Tells when messages begin to find no room in the outbox, and when they do again.

    `text` is what `/healthz` says, "" while there is room.
    """

    def __init__(self, gateway: "Gateway", outbox: Outbox) -> None:
        self.text = ""
        self._gateway = gateway
        self._outbox = outbox
        self._policy = WhenFull(gateway.configuration.outbox.when_full)
        self._counted = self._count()
        self._before = 0
        self._last = 0.0

    def start(self) -> None:
        """Look at each interval while the gateway runs."""
        task = asyncio.get_running_loop().create_task(self._run())
        self._gateway.stack.callback(task.cancel)

    def look(self) -> None:
        """Raise or end the alarm by what was counted since the last look."""
        counted, now = self._count(), self._gateway.clock.monotonic()
        if counted > self._counted:
            if not self.text:
                self._begin()
            self._counted, self._last = counted, now
        elif self.text and now - self._last >= QUIET_SECONDS and self._outbox.bounds.have_capacity:
            self._end()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self.look()

    def _begin(self) -> None:
        self._before = self._counted
        self.text = f"the outbox is full: {CONSEQUENCES[self._policy]}"
        logger.warning("%s", self.text)
        self._gateway.telemetry.alarm(ALARM, self.text)

    def _end(self) -> None:
        self.text = ""
        lost = self._counted - self._before
        logger.warning("the outbox has room again: meanwhile it had none for %d messages", lost)
        self._gateway.telemetry.alarm(ALARM, "")

    def _count(self) -> int:
        """Return how many messages found no room, or were given up for others, so far."""
        counters = self._gateway.counters
        evicted = sum(counters.count(f"tidegate/outbox/evicted/{policy}") for policy in WhenFull)
        return evicted + counters.count("tidegate/outbox/rejected")

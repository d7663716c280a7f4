"""Log lines about a link that is down: how long it was, how long it is, and how many wait."""

import asyncio
import logging
from typing import TYPE_CHECKING

from gateway.app.uplink.headroom import spell_seconds
from gateway.storage.outbox.outbox import Outbox
from gateway.uplink.uplink import Uplink

if TYPE_CHECKING:
    from gateway.app.gateway import Gateway

logger = logging.getLogger(__name__)

LOOK_SECONDS = 10.0
"""Seconds between two looks at whether it is time for a reminder."""

REMINDER_SECONDS = 3600.0
"""Seconds between two reminders."""

WORTH_TELLING = 5.0
"""Seconds that the link was down at least for its return to say so."""

EXPECTED = ("waiting", "off")
"""States in which the link is down because it should be: of these nobody is reminded."""


class LinkLines:
    """Follows the state of the uplink."""

    def __init__(self, gateway: "Gateway", uplink: Uplink, outbox: Outbox) -> None:
        self._gateway = gateway
        self._uplink = uplink
        self._outbox = outbox
        self._name = f"uplink {uplink.name}" if uplink.name else "uplink"
        self._index = outbox.uplinks.names.index(uplink.name)
        self._down_since: float | None = gateway.clock.monotonic()
        self._reminded = self._down_since

    def start(self) -> None:
        """Follow it while the gateway runs."""
        self._uplink.on_state.append(self.look)
        task = asyncio.get_running_loop().create_task(self._run())
        self._gateway.stack.callback(task.cancel)

    def look(self) -> None:
        """Say what is new."""
        now = self._gateway.clock.monotonic()
        if self._uplink.state != "connected":
            if self._down_since is None:
                self._down_since = self._reminded = now
            elif now - self._reminded >= REMINDER_SECONDS:
                self._reminded = now
                self._remind(now - self._down_since)
        elif self._down_since is not None:
            away, self._down_since = now - self._down_since, None
            if away >= WORTH_TELLING or self._rows:
                logger.info(
                    "%s: was down for %s; %s", self._name, spell_seconds(away), self._waiting()
                )

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self.look()

    def _remind(self, away: float) -> None:
        state = self._uplink.state
        if state in EXPECTED:
            return
        why = f" ({self._uplink.error})" if self._uplink.error else ""
        text = f"{state} for {spell_seconds(away)}{why}; {self._waiting()}"
        logger.warning("%s: %s", self._name, text)

    @property
    def _rows(self) -> int:
        """How many messages wait for this uplink."""
        return self._outbox.uplinks.rows[self._index]

    def _waiting(self) -> str:
        rows, oldest = self._rows, self._outbox.oldest_time
        if not rows or oldest is None:
            return "no message waits"
        if self._outbox.uplinks.several:  # the oldest may be another uplink's
            return f"{rows:,} messages wait"
        waited = max(0, self._gateway.clock.wall_ms() - oldest) / 1000
        return f"{rows:,} messages wait, the oldest for {spell_seconds(waited)}"

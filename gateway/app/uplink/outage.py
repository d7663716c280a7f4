"""Measures message rates and shows under `$SYS` how long an outage may last."""

import asyncio
from typing import TYPE_CHECKING

from gateway.app.uplink.headroom import Load, Room, drains, spell_seconds, survives
from gateway.storage.engine.damage import free_bytes
from gateway.storage.engine.reserve import RESERVE_BYTES
from gateway.storage.outbox.bounds import for_rows
from gateway.storage.outbox.outbox import Outbox

if TYPE_CHECKING:
    from gateway.app.gateway import Gateway

INTERVAL = 10.0
"""Seconds between two measurements."""

WINDOW = 600.0
"""Seconds over which the rate of new messages is averaged, exponentially."""


class Outage:
    """Keeps `tidegate/outbox/survives_seconds` and `drains_seconds` up to date.

    The first is how long an outage that begins now could last at the present rate; the second
    how long what would then wait takes to go up, at the best rate seen since the start, which
    is not there before anything went up.
    """

    def __init__(self, gateway: "Gateway", outbox: Outbox) -> None:
        self._gateway = gateway
        self._outbox = outbox
        self._accepted = self._acknowledged = 0
        self._rate = 0.0
        self._best = 0.0
        self._row_bytes = 0.0
        self._looked = self._started = gateway.clock.monotonic()
        self._warned = False

    def start(self) -> None:
        """Measure at each interval while the gateway runs."""
        task = asyncio.get_running_loop().create_task(self._run())
        self._gateway.stack.callback(task.cancel)

    def look(self) -> None:
        """Update the figures and the alarm."""
        self._measure()
        if not self._row_bytes:
            return
        load, room = Load(self._rate, self._row_bytes), self._room()
        seconds = survives(load, room)
        counters = self._gateway.counters
        counters.set("tidegate/outbox/survives_seconds", int(seconds))
        if self._best:
            waiting = self._outbox.rows + self._rate * seconds
            drained = drains(waiting, self._best, self._rate)
            counters.set("tidegate/outbox/drains_seconds", int(drained))
        self._warn(seconds)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(INTERVAL)
            self.look()

    def _measure(self) -> None:
        now, counters = self._gateway.clock.monotonic(), self._gateway.counters
        accepted = counters.count("tidegate/rules/accepted")
        acknowledged = counters.count("tidegate/uplink/acknowledged")
        elapsed = max(now - self._looked, 1e-3)
        weight = min(1.0, elapsed / min(WINDOW, max(now - self._started, elapsed)))
        self._rate += weight * ((accepted - self._accepted) / elapsed - self._rate)
        self._best = max(self._best, (acknowledged - self._acknowledged) / elapsed)
        self._accepted, self._acknowledged, self._looked = accepted, acknowledged, now
        if self._outbox.rows:
            self._row_bytes = self._outbox.bytes / self._outbox.rows

    def _room(self) -> Room:
        config = self._gateway.configuration.outbox
        disk = None
        if not self._gateway.database.in_memory:
            held = 0 if self._gateway.database.reserve.is_held else RESERVE_BYTES
            disk = max(0, free_bytes(self._gateway.data) - held)
        messages = None
        if config.maximum_messages is not None:
            messages = max(0, config.maximum_messages - self._outbox.rows)
        return Room(max(0, for_rows(config.maximum_bytes) - self._outbox.bytes), disk, messages)

    def _warn(self, seconds: float) -> None:
        """Raise the alarm `headroom` while an outage of the promised length would be too long.

        Only with an empty outbox: during an outage the time that is left becomes less by itself.
        """
        promised = self._gateway.configuration.outbox.survive
        short = promised > seconds
        if short is self._warned or not promised or (short and self._outbox.rows > self._rate * 60):
            return
        self._warned = short
        text = (
            f"at {self._rate:.1f} messages a second of {self._row_bytes:.0f} bytes the outbox"
            f" bears an outage of {spell_seconds(seconds)}, promised are {spell_seconds(promised)}"
        )
        self._gateway.telemetry.alarm("headroom", text if short else "")

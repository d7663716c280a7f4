"""The fleet destination: the outbox as QoS 1 messages to an MQTT 5 broker, within a window."""

import json
from collections.abc import Callable
from urllib.parse import urlsplit

from gateway.clock import Clock
from gateway.counters import Counters
from gateway.storage.outbox import Outbox
from gateway.storage.rejected import Rejected
from gateway.uplink.backoff import Backoff
from gateway.uplink.destination import Link, removals_on_disk
from gateway.uplink.errors import LinkError
from gateway.uplink.fleet_client import FleetClient, ServerLimits
from gateway.uplink.inflight import Inflight
from gateway.uplink.own_messages import OwnMessages
from gateway.uplink.sender import Sender
from gateway.uplink.settings import UplinkSettings

CONNACK_SECONDS = 30.0
"""How long all of connecting may take, each address of the broker's name included."""

LEAVE_SECONDS = 2.0
"""How long a stop waits for the PUBACKs that are still out."""

TICK_SECONDS = 1.0
"""The longest time between two looks at deadlines and the keep alive."""

HOLD_FIRST, HOLD_LONGEST = 1.0, 60.0
"""Seconds without sending after a PUBACK that asks to wait (Backoff)."""


class FleetDestination:
    """Sends rows to the broker of `settings.url`, a connection for each run."""

    def __init__(
        self,
        settings: UplinkSettings,
        outbox: Outbox,
        rejected: Rejected,
        counters: Counters,
        clock: Clock,
        random: Callable[[], float],
        own_messages: OwnMessages,
    ) -> None:
        if settings.url is None:
            raise ValueError("a fleet destination needs settings.url")
        target = urlsplit(settings.url)
        self.name = f"{target.scheme}://{target.netloc.rpartition('@')[2]}"
        self._settings = settings
        self._outbox = outbox
        self._rejected = rejected
        self._counters = counters
        self._clock = clock
        self._own_messages = own_messages
        self._hold = Backoff(HOLD_FIRST, HOLD_LONGEST, random)

    async def run(self, link: Link) -> None:
        """Connect and send until the link stops; raise LinkError when the connection fails."""
        inflight = Inflight(
            self._outbox,
            self._rejected,
            self._counters,
            self._clock,
            self._hold,
            self._own_messages,
        )
        client = FleetClient(self._settings, link.wake.set, inflight.acknowledged)
        try:
            limits = await self._connect(client, link)
            if limits is not None:
                await self._send(client, limits, inflight, link)
                await self._wait_for_acknowledgements(client, inflight, link)
        finally:
            client.close(farewell=link.stopping)
            inflight.close()

    async def _connect(self, client: FleetClient, link: Link) -> ServerLimits | None:
        """Return what the CONNACK said, None when the link stops before it came."""
        client.connect(will=self._status("offline"))
        deadline = self._clock.monotonic() + CONNACK_SECONDS
        while client.limits is None and not link.stopping:
            if self._clock.monotonic() > deadline:
                raise LinkError(f"no CONNACK within {CONNACK_SECONDS:.0f} s")
            await link.wait(TICK_SECONDS)
            client.service()
        return client.limits

    async def _send(
        self, client: FleetClient, limits: ServerLimits, inflight: Inflight, link: Link
    ) -> None:
        await removals_on_disk(self._outbox, link)
        sender = Sender(
            self._settings,
            self._outbox,
            self._counters,
            self._clock,
            client,
            limits,
            inflight,
            self._own_messages,
        )
        sender.send_status(self._status("online"))
        link.connected()
        while not link.stopping:
            _take_in(client, inflight, link)
            await sender.send_what_fits()
            await link.wait(TICK_SECONDS)

    async def _wait_for_acknowledgements(
        self, client: FleetClient, inflight: Inflight, link: Link
    ) -> None:
        leave_by = self._clock.monotonic() + LEAVE_SECONDS
        while len(inflight) and self._clock.monotonic() < leave_by:
            _take_in(client, inflight, link)
            await link.wait(LEAVE_SECONDS / 10)

    def _status(self, state: str) -> bytes:
        """Return the payload of the status message, and of the will."""
        settings = self._settings
        status = {"state": state, "epoch": settings.epoch, "version": settings.version}
        return json.dumps(status, separators=(",", ":")).encode()


def _take_in(client: FleetClient, inflight: Inflight, link: Link) -> None:
    """Do what the network asks for, and what the PUBACKs that came mean for the outbox."""
    client.service()
    inflight.settle()
    link.trouble(inflight.trouble)
    if inflight.overdue:
        raise LinkError("a PUBACK of the fleet's broker is overdue")

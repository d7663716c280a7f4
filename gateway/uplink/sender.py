"""Sends the rows of the outbox over one connection, as far as the window has room."""

from gateway.clock import Clock
from gateway.counters import Counters
from gateway.mqtt.reason_codes import ReasonCode
from gateway.storage.outbox import Outbox
from gateway.storage.outbox_row import OutboxRow
from gateway.uplink.fleet_client import FleetClient, ServerLimits
from gateway.uplink.fleet_message import FleetMessage, fleet_message, publish_size
from gateway.uplink.inflight import Inflight
from gateway.uplink.lanes import Lanes
from gateway.uplink.own_messages import OwnMessage, OwnMessages
from gateway.uplink.settings import UplinkSettings


class Sender:
    """Made when a connection is up: what is in the outbox at that moment is its backlog."""

    def __init__(
        self,
        settings: UplinkSettings,
        outbox: Outbox,
        counters: Counters,
        clock: Clock,
        client: FleetClient,
        limits: ServerLimits,
        inflight: Inflight,
        own_messages: OwnMessages,
    ) -> None:
        self._settings = settings
        self._outbox = outbox
        self._counters = counters
        self._clock = clock
        self._client = client
        self._limits = limits
        self._inflight = inflight
        self._own_messages = own_messages
        self._lanes = Lanes(outbox)

    def send_status(self, status: bytes) -> None:
        """Send the gateway's own retained status message, within the same window."""
        topic = self._settings.topic("status")
        mid = self._client.publish(topic, status, retain=self._limits.retain_available)
        self._inflight.sent(mid, None, len(topic) + len(status))

    async def send_what_fits(self) -> None:
        """Send until the window is full, nothing is left, or the fleet's broker says wait."""
        inflight = self._inflight
        while not inflight.held and inflight.room(
            self._settings.window, self._limits.receive_maximum
        ):
            own = self._own_messages.next()
            if own is not None:
                self._send_own(own)
                continue
            row = inflight.again()
            again = row is not None
            if row is None and (row := await self._lanes.next()) is None:
                return
            if self._outbox.take(row, self._clock.wall_ms()):
                self._send(row, resent=again or self._lanes.waited(row))

    def _send_own(self, message: OwnMessage) -> None:
        topic = self._settings.topic(message.suffix)
        size = publish_size(topic, b"\0", message.payload)
        if self._too_large(size):
            self._own_messages.answered(message, ReasonCode.PACKET_TOO_LARGE)
            return
        self._inflight.sent(self._client.publish(topic, message.payload), message, size)

    def _send(self, row: OutboxRow, *, resent: bool) -> None:
        message = fleet_message(row, self._settings, resent=resent, now=self._clock.wall_ms())
        refusal = self._refusal(message)
        if refusal is not None:
            self._inflight.refuse(row, refusal)
            return
        mid = self._client.publish(message.topic, message.payload, properties=message.properties)
        self._inflight.sent(mid, row, message.size)
        self._counters.add("tidegate/uplink/sent")
        if resent:
            self._counters.add("tidegate/uplink/resent")

    def _refusal(self, message: FleetMessage) -> ReasonCode | None:
        """Return why the server cannot be given this at all [MQTT-3.2.2-15], None if it can."""
        if self._too_large(message.size):
            return ReasonCode.PACKET_TOO_LARGE
        return None if message.topic_fits else ReasonCode.TOPIC_NAME_INVALID

    def _too_large(self, size: int) -> bool:
        maximum = self._limits.maximum_packet_size
        return maximum is not None and size > maximum

"""Puts what a connection has to carry into PUBLISH packets, and accounts for each."""

from typing import NamedTuple

from gateway.mqtt.alias_budget import AliasBudget
from gateway.mqtt.outbound_aliases import OutboundAliases
from gateway.mqtt.reason_codes import ReasonCode
from gateway.storage.outbox_row import OutboxRow
from gateway.uplink.batch import SUFFIX, Batch, batch_line, batch_payload
from gateway.uplink.fleet_client import FleetClient, ServerLimits
from gateway.uplink.fleet_message import (
    FleetMessage,
    PackedProperties,
    fleet_message,
    publish_size,
)
from gateway.uplink.inflight import Inflight
from gateway.uplink.own_messages import OwnMessage
from gateway.uplink.pacing import Pacing
from gateway.uplink.parts import UplinkParts
from gateway.uplink.sent import Sent


class Picked(NamedTuple):
    """A row that is next, and how it goes."""

    row: OutboxRow
    resent: bool
    paced: bool


class Publisher:
    """One connection's way out; every packet leaves with QoS 1 and is noted as in flight."""

    def __init__(
        self,
        parts: UplinkParts,
        pacing: Pacing,
        client: FleetClient,
        limits: ServerLimits,
        inflight: Inflight,
    ) -> None:
        self._settings = parts.settings
        self._parts = parts
        self._pacing = pacing
        self._client = client
        self._limits = limits
        self._inflight = inflight
        self._batch_topic = parts.settings.topic(SUFFIX)
        self._aliases = self._make_aliases()

    def status(self, status: bytes) -> None:
        """Send the retained status message."""
        topic = self._settings.topic("status")
        mid = self._client.publish(topic, status, retain=self._limits.retain_available)
        self._inflight.sent(mid, Sent(len(topic) + len(status), status=status))

    def own(self, message: OwnMessage) -> None:
        """Send a message of the gateway's own; end it if it is too large for the server."""
        topic = self._settings.topic(message.suffix)
        size = publish_size(topic, b"\0", message.payload)
        if self._too_large(size):
            self._parts.own_messages.answered(message, ReasonCode.PACKET_TOO_LARGE)
            return
        mid = self._client.publish(topic, message.payload)
        self._inflight.sent(mid, Sent(size, own=message))

    def row(self, picked: Picked) -> None:
        """Send a row in a PUBLISH of its own; give it up if the server can never take it."""
        now = self._parts.clock.wall_ms()
        message = fleet_message(
            picked.row, self._settings, resent=picked.resent, now=now, aliases=self._aliases
        )
        refusal = self._refusal(message)
        if refusal is not None:
            self._inflight.refuse(picked.row, refusal)
            if self._aliases is not None:
                self._aliases.close()  # one that this packet was to set does not stand
            return
        mid = self._client.publish(message.topic, message.payload, properties=message.properties)
        paced = message.size if picked.paced else 0
        self._inflight.sent(mid, Sent(message.size, (picked.row,), paced=paced))
        if picked.paced:
            self._pacing.sent(1, paced)
        self._count(1, picked.resent)

    def batch(self, batch: Batch) -> None:
        """Send a batch; its rows were counted by the pacing when they joined it, its bytes now."""
        payload = batch.payload()
        size = publish_size(self._batch_topic, b"\0", payload)
        mid = self._client.publish(self._batch_topic, payload)
        paced = size * batch.paced // len(batch.rows)
        self._inflight.sent(mid, Sent(size, batch.rows, paced=paced, batched=True))
        self._pacing.sent(0, paced)
        self._count(len(batch.rows), batch.resent)
        self._parts.counters.add("tidegate/uplink/batches")

    def again(self, mid: int, sent: Sent) -> None:
        """Repeat a packet of an earlier connection under its identifier, without an alias.

        One that has become too large for the server meanwhile goes on like a new one: its rows
        are refused, or taken apart.
        """
        topic, payload, properties = self._repetition(sent)
        packed = b"\0" if properties is None else properties.pack()
        sent.size, sent.paced = publish_size(topic, packed, payload), 0
        self._inflight.sent(mid, sent)
        if self._too_large(sent.size):
            self._inflight.acknowledged(mid, ReasonCode.PACKET_TOO_LARGE)
            return
        retain = bool(sent.status) and self._limits.retain_available
        self._client.publish_again(mid, topic, payload, retain, properties)
        if sent.rows:
            self._count(len(sent.rows), len(sent.rows))

    def _repetition(self, sent: Sent) -> tuple[str, bytes, PackedProperties | None]:
        """Return topic, payload and properties of a packet as they are now."""
        now = self._parts.clock.wall_ms()
        if sent.own is not None:
            return self._settings.topic(sent.own.suffix), sent.own.payload, None
        if not sent.rows:
            return self._settings.topic("status"), sent.status, None
        if not sent.batched:
            message = fleet_message(sent.rows[0], self._settings, resent=True, now=now)
            return message.topic, message.payload, message.properties
        identity = self._settings.identity
        lines = [batch_line(row, identity=identity, resent=True, now=now) for row in sent.rows]
        return self._batch_topic, batch_payload(lines), None

    def _make_aliases(self) -> OutboundAliases | None:
        maximum = min(self._limits.topic_alias_maximum, self._settings.topic_alias_maximum)
        return OutboundAliases(maximum, 0, AliasBudget()) if maximum else None

    def _count(self, sent: int, resent: int) -> None:
        self._parts.counters.add("tidegate/uplink/sent", sent)
        if resent:
            self._parts.counters.add("tidegate/uplink/resent", resent)

    def _refusal(self, message: FleetMessage) -> ReasonCode | None:
        """Return why the server cannot be given this at all [MQTT-3.2.2-15], None if it can."""
        if self._too_large(message.size):
            return ReasonCode.PACKET_TOO_LARGE
        return None if message.topic_fits else ReasonCode.TOPIC_NAME_INVALID

    def _too_large(self, size: int) -> bool:
        maximum = self._limits.maximum_packet_size
        return maximum is not None and size > maximum

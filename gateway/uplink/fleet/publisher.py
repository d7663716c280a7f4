"""Sends rows and control messages in PUBLISH packets, and counts each."""

import logging
from collections.abc import Sequence

from gateway.mqtt.aliases.outbound_aliases import OutboundAliases
from gateway.mqtt.aliases.topic_aliases import AliasBudget
from gateway.mqtt.reason_codes import ReasonCode
from gateway.storage.outbox.row import OutboxRow
from gateway.uplink.batch import SUFFIX, Batch, batch_line, batch_payload
from gateway.uplink.context import UplinkContext
from gateway.uplink.fleet.client import FleetClient
from gateway.uplink.fleet.connecting import ServerLimits
from gateway.uplink.fleet.inflight import Inflight
from gateway.uplink.fleet.message import FleetMessage, FleetMessages, fleet_message
from gateway.uplink.link.pacing import Pacing
from gateway.uplink.reports.control_messages import ControlMessage
from gateway.uplink.rules.targets import UnsendableTopicError
from gateway.uplink.sent import Sent

logger = logging.getLogger(__name__)


class Picked:
    """The next row to send, whether it was sent before, and whether the pacing limits it."""

    __slots__ = ("paced", "resent", "row")

    def __init__(self, row: OutboxRow, *, resent: bool = False, paced: bool = False) -> None:
        self.row = row
        self.resent = resent
        self.paced = paced


class Publisher:
    """Sends on one connection; every packet is recorded as in flight, mostly with QoS 1."""

    __slots__ = (
        "_aliases",
        "_batch_topic",
        "_client",
        "_context",
        "_counters",
        "_inflight",
        "_limits",
        "_messages",
        "_pacing",
        "_settings",
    )

    def __init__(
        self,
        context: UplinkContext,
        pacing: Pacing,
        client: FleetClient,
        limits: ServerLimits,
        inflight: Inflight,
    ) -> None:
        self._settings = context.settings
        self._context = context
        self._counters = context.counters
        self._pacing = pacing
        self._client = client
        self._limits = limits
        self._inflight = inflight
        self._batch_topic = context.settings.topic(SUFFIX)
        self._aliases = self._make_aliases()
        self._messages = FleetMessages(
            context.settings,
            self._aliases,
            mqtt_5=limits.mqtt_5,
            retains=limits.retain_available,
        )

    def status(self, status: bytes) -> None:
        """Send the retained status message, if it is not too large for the server."""
        message = self._status(status)
        if self._too_large(message.size):
            logger.warning("the fleet's broker accepts no packet of the size of the status message")
            return
        self._inflight.sent(self._client.publish(message), Sent(message.size, status=status))

    def own(self, message: ControlMessage) -> None:
        """Send a control message; end it if it is too large for the server."""
        made = self._own(message)
        if self._too_large(made.size):
            self._context.control_messages.answered(message, ReasonCode.PACKET_TOO_LARGE)
            return
        self._inflight.sent(self._client.publish(made), Sent(made.size, own=message))

    def row(self, row: OutboxRow, now: int, resent: bool = False, is_paced: bool = False) -> None:
        """Send a row in a PUBLISH of its own at `now` (ms since 1970).

        It is `resent` if it was sent before, and `is_paced` if the pacing limits it. It is rejected
        if its topic is invalid, and waits if it is too large for this connection.
        """
        # newer rows may have overtaken it, and the fleet must retain the last one
        superseded = (resent or is_paced) and self._superseded(row)
        try:
            message = self._messages.of(
                row, now, resent=resent, aliased=True, superseded=superseded
            )
        except UnsendableTopicError as error:
            self._inflight.refuse(row, ReasonCode.TOPIC_NAME_INVALID, str(error))
            return
        maximum = self._limits.maximum_packet_size
        if maximum is not None and message.size > maximum:
            problem = f"the fleet's broker accepts no packet of {message.size:,} bytes"
            self._inflight.defer(row, ReasonCode.PACKET_TOO_LARGE, problem)
            if self._aliases is not None:
                self._aliases.close()  # an alias that this packet was to set is invalid
            return
        mid = self._client.publish(message)
        paced = message.size if is_paced else 0
        self._inflight.sent(mid, Sent(message.size, (row,), paced=paced))
        if is_paced:
            self._pacing.sent(1, paced)
        self._count((row,))

    def _superseded(self, row: OutboxRow) -> bool:
        retained = self._context.requests.retained
        return retained is not None and retained.superseded(row)

    def batch(self, batch: Batch) -> None:
        """Send a batch.

        The pacing counted its rows when they joined it, and counts its bytes now.
        """
        message = self._plain(self._batch_topic, batch.payload())
        mid = self._client.publish(message)
        paced = message.size * batch.paced // len(batch.rows)
        self._inflight.sent(mid, Sent(message.size, batch.rows, paced=paced, batched=True))
        self._pacing.sent(0, paced)
        self._count(batch.rows)
        self._counters.add("tidegate/uplink/batches")

    def again(self, mid: int, sent: Sent) -> int:
        """Resend a packet of an earlier connection under its identifier, without an alias.

        One that the session at the server does not know has the identifier 0 and gets another.
        Return its identifier. One that has become too large for the server is handled like a new
        one: its rows wait, or are split.
        """
        message = self._repetition(sent)
        sent.size, sent.paced = message.size, 0
        is_known = mid > 0
        mid = mid or self._client.packet_identifiers.next()
        self._inflight.sent(mid, sent)
        if self._too_large(sent.size):
            self._client.packet_identifiers.release(mid)
            self._inflight.acknowledged(mid, ReasonCode.PACKET_TOO_LARGE)
            return mid
        self._client.publish_again(mid, message, dup=is_known)
        if sent.rows:
            self._count(sent.rows)
        return mid

    def _repetition(self, sent: Sent) -> FleetMessage:
        """Return the packet for its present rows or control message."""
        now = self._context.clock.wall_ms()
        if sent.own is not None:
            return self._own(sent.own)
        if not sent.rows:
            return self._status(sent.status)
        if not sent.batched or (len(sent.rows) == 1 and self._limits.mqtt_5):
            return self._messages.of(sent.rows[0], now, resent=True, aliased=False)
        identity = self._settings.identity
        lines = [batch_line(row, identity=identity, resent=True, now=now) for row in sent.rows]
        return self._plain(self._batch_topic, batch_payload(lines))

    def _status(self, status: bytes) -> FleetMessage:
        retain = self._settings.status_retained and self._limits.retain_available
        return self._plain(self._settings.status_topic, status, retain=retain)

    def _own(self, message: ControlMessage) -> FleetMessage:
        return self._plain(self._settings.topic(message.suffix), message.payload)

    def _plain(self, topic: str, payload: bytes, *, retain: bool = False) -> FleetMessage:
        return fleet_message(topic, payload, retain=retain, version=self._client.version)

    def _make_aliases(self) -> OutboundAliases | None:
        maximum = min(self._limits.topic_alias_maximum, self._settings.topic_alias_maximum)
        return OutboundAliases(maximum, AliasBudget()) if maximum else None

    def _count(self, rows: Sequence[OutboxRow]) -> None:
        self._counters.add("tidegate/uplink/sent", len(rows))
        session = self._context.session
        if session.sent and (resent := session.count_resent(rows)):
            self._counters.add("tidegate/uplink/resent", resent)

    def _too_large(self, size: int) -> bool:
        """Return whether the packet is larger than the server accepts [MQTT-3.2.2-15]."""
        maximum = self._limits.maximum_packet_size
        return maximum is not None and size > maximum

"""The fleet destination: sends the outbox as QoS 1 messages to an MQTT broker, in a window."""

import asyncio
import json
import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol
from urllib.parse import urlsplit

from gateway.mqtt.packets import Publish, SubscriptionRequest, Will
from gateway.settings.uplink import AUTO, MQTT_3_1_1, MQTT_5, UplinkSettings
from gateway.uplink.context import (
    RECALL_TOPIC,
    Requests,
    UplinkContext,
)
from gateway.uplink.destination import Link, removals_on_disk
from gateway.uplink.errors import End, FetchAgainError, LinkError, OldBrokerError, RetainError
from gateway.uplink.fleet.client import FleetClient
from gateway.uplink.fleet.connecting import ServerLimits
from gateway.uplink.fleet.inflight import Inflight
from gateway.uplink.fleet.publisher import Publisher
from gateway.uplink.fleet.sender import Sender
from gateway.uplink.fleet.status_check import StatusCheck
from gateway.uplink.link.backoff import Backoff
from gateway.uplink.link.pacing import Pacing

if TYPE_CHECKING:
    from gateway.uplink.down import Down

logger = logging.getLogger(__name__)

CONNACK_SECONDS = 30.0
"""Maximum seconds for connecting, for all addresses of the broker's name."""

DISCONNECT_SECONDS = 2.0
"""Seconds for which a stop waits for outstanding PUBACKs."""

TICK_SECONDS = 1.0
"""Maximum seconds between two checks of deadlines and keep alive."""

HOLD_FIRST, HOLD_LONGEST = 1.0, 60.0
"""Seconds without sending after a PUBACK that asks to wait (Backoff)."""


UNANSWERED = 2
"""Connections closed without a CONNACK by the fleet's broker until an older MQTT is tried."""


class Dialect(NamedTuple):
    """An MQTT version, and whether it is used with Mosquitto's bridge bit."""

    name: str
    mqtt_5: bool = False
    bridge: bool = False


MQTT_5_ONLY = Dialect("MQTT 5", mqtt_5=True)
BRIDGE = Dialect("MQTT 3.1.1 of bridges", bridge=True)
"""Messages that were sent up do not come down again; MQTT 5 uses No Local for that."""

PLAIN = Dialect("MQTT 3.1.1")


def dialects(settings: UplinkSettings) -> list[Dialect]:
    """Return the dialects for the fleet's broker; if it refuses one, the next is tried."""
    older = [BRIDGE, PLAIN] if settings.down else [PLAIN]
    if settings.mqtt == MQTT_3_1_1:
        return older
    if settings.mqtt == MQTT_5 or (settings.batch is None and not settings.plain):
        return [MQTT_5_ONLY]  # only MQTT 5 has user properties, which the numbers are sent in
    return [MQTT_5_ONLY, *older]


class FleetDestination:
    """Sends rows to the broker of `settings.url`, a connection for each run.

    With batches or plain messages it falls back to MQTT 3.1.1 if the broker does not support MQTT
    5, unless `settings.mqtt` selects one of them.
    """

    def __init__(self, context: UplinkContext, random: Callable[[], float]) -> None:
        if context.settings.url is None:
            raise ValueError("a fleet destination needs settings.url")
        target = urlsplit(context.settings.url)
        self.name = f"{target.scheme}://{target.netloc.rpartition('@')[2]}"
        self._context = context
        self._settings = context.settings
        self._clock = context.clock
        self._hold = Backoff(HOLD_FIRST, HOLD_LONGEST, random)
        self._pacing = Pacing(context.settings, context.clock.monotonic())
        self._dialects = dialects(context.settings)
        self._dialect = 0
        self._unanswered = 0  # connections in this dialect that were closed without a CONNACK
        self._retains = True
        self._session = context.session
        self._status_check = StatusCheck(context.settings)

    async def run(self, link: Link) -> None:
        """Connect and send until the link stops; raise LinkError if the connection fails."""
        end = End.FAILED
        inflight = Inflight(self._context, self._pacing, self._hold, link.trouble)
        client = FleetClient(
            self._settings,
            link.wake.set,
            inflight.acknowledged,
            mqtt_5=self._dialects[self._dialect].mqtt_5,
            bridge=self._dialects[self._dialect].bridge,
            begin=self._context.begin_connection,
        )
        self._context.metering.begin()
        try:
            limits = await self._connect(client, link)
            if limits is not None:
                await self._send(client, limits, inflight, link)
                await self._wait_for_acknowledgements(client, inflight, link)
        except OldBrokerError:
            text = f"the fleet's broker does not speak {self._dialects[self._dialect].name}"
            if not self._try_next_dialect():
                raise LinkError(text + self._advice(), End.REFUSED, lasting=True) from None
            text += f": trying {self._dialects[self._dialect].name}"
            raise LinkError(text, End.REFUSED) from None
        except RetainError as error:
            self._retains = False
            raise LinkError(f"{error}: trying without a retained will", error.end) from None
        except LinkError as error:
            self._failed(client, error)
            end = error.end
            raise
        finally:
            await client.close(farewell=link.stopping)
            self._context.metering.count(client.bytes_carried)
            self._end(client, inflight, end)

    def _end(self, client: FleetClient, inflight: Inflight, end: End) -> None:
        """Keep messages without PUBACK, and drop those that repeatedly end connections."""
        session, now = self._session, self._clock.monotonic()
        last = client.packet_identifiers.last or session.last_packet_identifier
        given_up = session.end(inflight.close(), last, end, now)
        if given_up is not None:
            inflight.reject_suspect(given_up)
        elif session.suspects.blamed is not None:
            inflight.log_suspected(session.suspects.blamed)

    def _try_next_dialect(self) -> bool:
        """Use an older dialect from now on; return False if there is none."""
        if self._dialect + 1 == len(self._dialects):
            return False
        self._dialect += 1
        self._unanswered = 0
        return True

    def _advice(self) -> str:
        """Return what can be configured if the fleet's broker refuses all dialects."""
        if self._settings.mqtt != AUTO:
            return f'; [uplink] mqtt = "{self._settings.mqtt}" allows no other'
        if len(self._dialects) == 1:
            return '; with MQTT 3.1.1 the uplink needs [uplink] batch = "zlib", or plain = true'
        return ""

    def _note_unanswered(self, error: LinkError) -> None:
        """Try an older dialect after two connections that were closed without a CONNACK.

        Some brokers of MQTT 3.1.1 close a connection with an unknown version. After any other
        failure MQTT 5 is tried again: the broker may be another one.
        """
        if error.end in (End.CLOSED, End.RESET):
            self._unanswered += 1
            if self._unanswered < UNANSWERED:
                return
            name = self._dialects[self._dialect].name
            if self._try_next_dialect():
                logger.warning(
                    "uplink to %s: %d connections in %s were closed without an answer: trying %s",
                    *(self.name, UNANSWERED, name, self._dialects[self._dialect].name),
                )
                return
        self._dialect = self._unanswered = 0

    def _failed(self, client: FleetClient, error: LinkError) -> None:
        """Report a lost connection to the pacing; try MQTT 5 again after a failed one."""
        if client.limits is None:
            self._note_unanswered(error)
        elif error.end is End.TOO_FAST:
            self._pacing.slow_down(self._clock.monotonic())
        elif not isinstance(error, FetchAgainError):
            self._pacing.lost(self._clock.monotonic())
        if client.limits is not None:
            if error.end in (End.CLOSED, End.RESET):
                self._status_check.suspect()
            error.soon = self._session.suspects.active and self._session.suspects.progress

    async def _connect(self, client: FleetClient, link: Link) -> ServerLimits | None:
        """Return the limits of the CONNACK, None if the link stops before it arrives."""
        # messages that waited in the session follow the CONNACK directly
        client.listen(
            lambda publish, acknowledge: self._received(client, link, publish, acknowledge)
        )
        client.on_skipped = self._skipped
        if self._context.requests.down is not None:
            self._context.requests.down.begin()
        client.connect(self._will(), clean_start=not self._session.known)
        begun = self._clock.monotonic()
        while client.limits is None and not link.stopping:
            if self._clock.monotonic() > begun + CONNACK_SECONDS:
                text = f"no CONNACK within {CONNACK_SECONDS:.0f} s"
                raise LinkError(text, End.UNANSWERED)
            await link.wait(TICK_SECONDS)
            client.service()
        now = self._clock.monotonic()
        self._pacing.begin(min(now - begun, TICK_SECONDS), now)
        return client.limits

    def _received(
        self, client: FleetClient, link: Link, publish: Publish, acknowledge: Callable[[], None]
    ) -> None:
        """Pass a message of the fleet to the part that requested it."""
        requests = self._context.requests
        taken_over = self._status_check.receive(publish)
        if taken_over is not None:
            link.taken_over(taken_over)
        if requests.recall is not None and publish.topic == self._settings.topic(RECALL_TOPIC):
            if not publish.retain:
                requests.recall(publish.payload)
        elif (
            requests.retained is not None
            and requests.retained.compare(publish)
            and not (requests.down is not None and requests.down.wants(publish.topic))
        ):
            pass
        elif requests.down is not None and not self._is_own_status(publish, requests.down):
            requests.down.receive(publish, acknowledge, resumed=client.session_present)
            return
        acknowledge()

    def _is_own_status(self, publish: Publish, down: "Down") -> bool:
        """Return whether this came for the status check alone."""
        return publish.topic == self._settings.status_topic and not down.wants(publish.topic)

    def _skipped(self, topic: str, why: str) -> None:
        self._context.counters.add("tidegate/uplink/down_too_large")
        logger.warning("%.80r was not received from %s: %s", topic, self.name, why)

    async def _send(
        self, client: FleetClient, limits: ServerLimits, inflight: Inflight, link: Link
    ) -> None:
        await removals_on_disk(self._context.outbox, self._context.uplink, link)
        publisher = Publisher(self._context, self._pacing, client, limits, inflight)
        self._session.begin(present=client.session_present)
        client.packet_identifiers.last = self._session.last_packet_identifier
        for suspect in self._session.suspects.held:
            client.packet_identifiers.hold(suspect.mid)
        sender = Sender(
            *(self._context, self._pacing, publisher, client, limits, inflight, self._session),
            link.wake.set,
        )
        subscriptions = Subscriptions(client, self._context.requests, self._settings)
        # ahead of the status: a reader of "online" may send a request at once
        subscriptions.begin()
        self._status_check.begin(subscriptions)
        if self._settings.announces and not self._session.suspects.holds_status:
            publisher.status(self._status("online"))
        link.connected()
        client.on_read = sender.answered
        writes = self._context.outbox.writes
        inflight.live = writes.begin_live(sender, self._context.uplink)
        retained = self._context.requests.retained
        if retained is not None:
            retained.connected(self._settings, subscriptions, present=client.session_present)
        try:
            await self._keep_sending(client, inflight, link, sender)
        finally:
            if retained is not None:
                retained.disconnected()
            writes.end_live(self._context.uplink)
            inflight.live = None
            client.on_read = link.wake.set

    async def _keep_sending(
        self, client: FleetClient, inflight: Inflight, link: Link, sender: Sender
    ) -> None:
        while not link.stopping:
            _receive(client, inflight)
            down = self._context.requests.down
            if down is not None and down.fetch_again:
                raise FetchAgainError
            more = await sender.send_what_fits()
            left = _flush(client, inflight)
            if more or left:
                await asyncio.sleep(0)  # there is more, but other tasks and PUBACKs come first
                continue
            self._show_pacing()
            self._context.metering.count(client.bytes_carried)
            await link.wait(min(TICK_SECONDS, sender.wait() or TICK_SECONDS))

    async def _wait_for_acknowledgements(
        self, client: FleetClient, inflight: Inflight, link: Link
    ) -> None:
        disconnect_by = self._clock.monotonic() + DISCONNECT_SECONDS
        while len(inflight) and self._clock.monotonic() < disconnect_by:
            _receive(client, inflight)
            await link.wait(DISCONNECT_SECONDS / 10)

    def _show_pacing(self) -> None:
        counters, pacing = self._context.counters, self._pacing
        messages, size = round(pacing.messages_per_second), round(pacing.bytes_per_second)
        counters.set("tidegate/uplink/backlog_messages_per_second", messages)
        counters.set("tidegate/uplink/backlog_bytes_per_second", size)
        counters.set("tidegate/uplink/slowdowns", pacing.slowdowns)
        counters.set("tidegate/uplink/puback_ms", round(pacing.last_delay * 1000))

    def _will(self) -> Will | None:
        """Return the will, which the fleet's broker publishes when the connection ends."""
        settings = self._settings
        if not settings.announces:
            return None
        retain = settings.status_retained and self._retains
        return Will(settings.status_topic, self._status("offline"), qos=1, retain=retain)

    def _status(self, state: str) -> bytes:
        """Return the payload of the status message, and of the will."""
        settings = self._settings
        if settings.notifications is not None:
            text: str = getattr(settings.notifications, state)
            return text.encode()
        status = {"state": state, "epoch": settings.epoch, "version": settings.version}
        return json.dumps(status, separators=(",", ":")).encode()


class Subscribing(Protocol):
    """A connection that subscribes."""

    @property
    def session_present(self) -> bool:
        """Whether the fleet's broker has a session of the gateway."""
        ...

    def subscribe(self, *requests: SubscriptionRequest) -> None:
        """Subscribe."""
        ...

    def unsubscribe(self, *topic_filters: str, on_done: Callable[[], None]) -> None:
        """Unsubscribe."""
        ...

    def flush(self) -> None:
        """Send the requests."""
        ...


class Subscriptions:
    """A connection's subscriptions, noted on disk until they end.

    So the next connection ends those that it does not want, whatever ended this one.
    """

    def __init__(self, client: Subscribing, requests: Requests, settings: UplinkSettings) -> None:
        self._client = client
        self._noted = requests.subscribed
        recall, down = requests.recall, requests.down
        self._packets = [
            [] if recall is None else [SubscriptionRequest(settings.topic(RECALL_TOPIC), 1)],
            [] if down is None else down.subscriptions,
        ]
        self._wanted = {each.topic_filter: each for many in self._packets for each in many}

    def begin(self) -> None:
        """Subscribe to the fleet's messages, and unsubscribe what an earlier connection wanted."""
        gone = self._noted.topics - self._wanted.keys()
        if not self._client.session_present:
            self._noted.discard(gone)
        else:
            self.unsubscribe(*gone)
        self._noted.add(self._wanted)
        for each in self._packets:
            if each:
                self._client.subscribe(*each)

    def subscribe(self, *requests: SubscriptionRequest) -> None:
        """Subscribe for a while, and get what is retained; what is wanted stays as it is."""
        wanted = [self._wanted.get(each.topic_filter, each) for each in requests]
        self._noted.add(each.topic_filter for each in wanted)
        self._client.subscribe(*(replace(each, retain_handling=0) for each in wanted))

    def unsubscribe(self, *topic_filters: str) -> None:
        """Unsubscribe what is not wanted."""
        gone = {*topic_filters} - self._wanted.keys()
        if gone:
            done = partial(self._noted.discard, gone)
            self._client.unsubscribe(*sorted(gone), on_done=done)

    def flush(self) -> None:
        """Send the requests."""
        self._client.flush()


def _receive(client: FleetClient, inflight: Inflight) -> None:
    """Handle received packets, and remove acknowledged rows from the outbox."""
    client.service()
    inflight.settle()
    if inflight.overdue:
        raise LinkError("a PUBACK of the fleet's broker is overdue", End.UNANSWERED)


def _flush(client: FleetClient, inflight: Inflight) -> bool:
    """Send what is queued; return whether that ended messages of QoS 0."""
    client.flush()
    return inflight.unanswered > 0 and not client.blocked and inflight.written()

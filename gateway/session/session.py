"""One client's side of the conversation: what it is owed and was sent."""

from collections.abc import Callable, Sequence
from enum import IntEnum
from math import inf

from gateway.access.access import EVERYTHING, Access
from gateway.access.listeners import UNKNOWN, Origin
from gateway.access.rule import READ
from gateway.counters import Counters
from gateway.mqtt.connection import Connection
from gateway.mqtt.delivery_policy import DeliveryPolicy
from gateway.mqtt.packets import Will, message_size
from gateway.mqtt.publication import Publication
from gateway.session import sending
from gateway.session.delivery_class import AT_ONCE, DeliveryClass
from gateway.session.durability_class import COMMIT
from gateway.session.incoming import Incoming
from gateway.session.inflight import Inflight
from gateway.session.journal import NO_JOURNAL, Journal
from gateway.session.limits import SessionLimits
from gateway.session.queue import overflow
from gateway.session.queue.delivery_queue import DeliveryQueue
from gateway.session.span import Span
from gateway.session.traffic import Traffic


class Readiness(IntEnum):
    """What becomes of the message; the lowest is the best."""

    READY = 0  # it is sent at once
    WAITING = 1  # it waits behind others
    AWAY = 2  # it waits for the client to come back
    FULL = 3  # it is lost, or refused
    ENDED = 4  # the session is not to get it: it has ended


EXPIRING = 1.0
"""Seconds for which a message that expires is held: what is left is told when it is queued."""


class Session:
    """The state that MQTT 5 section 4.1 calls the Session, and how messages leave it."""

    __slots__ = (
        "_incoming",
        "_will",
        "access",
        "client_id",
        "conflated",
        "connection",
        "consumes",
        "counters",
        "delivery",
        "drops",
        "durability_class",
        "ended",
        "expiry_interval",
        "granted",
        "holder",
        "home",
        "inflight",
        "journal",
        "limits",
        "on_capacity",
        "origin",
        "queue",
        "traffic",
        "unchecked",
        "username",
    )

    inline = False  # a client is not told which of its topic filters matched

    def __init__(
        self,
        client_id: str,
        counters: Counters,
        limits: SessionLimits | None = None,
        traffic: Traffic | None = None,
    ) -> None:
        self.client_id = client_id
        self.counters = counters
        self.traffic = traffic or Traffic()
        self.limits = limits = limits or SessionLimits()
        self.username: str | None = None
        self.holder = ""  # whose share what is held for it counts to
        self.home: Origin = UNKNOWN  # how its owner came when it began
        self.access: Access = EVERYTHING  # of its owner there: says which messages it gets
        self.origin: Origin = UNKNOWN  # how its connection came, or the last one that it had
        self.granted: Access = EVERYTHING  # of that connection: says which of them are sent
        self.unchecked = False  # each message is asked about before it is sent
        self.connection: Connection | None = None
        self.journal: Journal = NO_JOURNAL
        self.drops: dict[str, int] | None = None  # messages that it lost, by cause
        self.ended = False  # its subscriptions may be there for a while yet
        self.expiry_interval = 0
        self.durability_class = COMMIT
        self.delivery: DeliveryClass = AT_ONCE
        self.queue = DeliveryQueue(
            limits.maximum_queued_messages, limits.maximum_queued_bytes, limits.memory
        )
        self.inflight = Inflight(limits.maximum_inflight)
        self._incoming: Incoming | None = None  # made with the first QoS 2 message
        self._will: Will | None = None
        self.consumes: tuple[Session, ...] = ()  # channels
        self.conflated: Session | None = None  # takes its messages once one is to be conflated
        # called with monotonic seconds when there may be room for more; set while more waits
        self.on_capacity: Callable[[Session, float], None] | None = None

    @property
    def persistent(self) -> bool:
        """True if the session outlives its network connection."""
        return self.expiry_interval > 0

    @property
    def has_incoming(self) -> bool:
        """Whether a PUBREL may come."""
        return self._incoming is not None and len(self._incoming) > 0

    @property
    def incoming(self) -> Incoming:
        """The QoS 2 messages of the client that were taken and not released yet."""
        if self._incoming is None:
            self._incoming = Incoming(self.limits.maximum_incoming, self.limits.memory)
        return self._incoming

    @property
    def will(self) -> Will | None:
        """What is published if the connection ends badly, None once it is not to be any more."""
        return self._will

    @will.setter
    def will(self, will: Will | None) -> None:
        before, self._will = self._will, will
        if before is not None:
            self.limits.memory.charge(-message_size(before))
        if will is not None:
            self.limits.memory.charge(message_size(will))

    def grant(self, access: Access, granted: Access) -> None:
        """Give the owner the rights of `access` at home, and its connection those `granted`.

        What waits is looked at again; `pump` sends what may be read now.
        """
        if access is self.access and granted is self.granted:
            return
        self.access, self.granted = access, granted
        self.queue.queue_held_back()
        self.unchecked = self.queue.messages > 0 or granted is not access
        if self.connection is not None:
            self._withhold()

    def may_read(self, topic: str) -> bool:
        """Return whether the owner may read a topic at home, and its connection, too."""
        access, granted = self.access, self.granted
        if not access.rights(topic) & READ:
            return False
        return granted is access or bool(granted.rights(topic) & READ)

    def attach(self, connection: Connection, receive_maximum: int) -> None:
        """Use this network connection from now on; `pump` sends what waits for it."""
        self.connection = connection
        if self._incoming is not None:
            self._incoming.begin()
        if len(self.inflight):
            self.inflight.refund(self.limits.memory)
        self.inflight.begin(min(receive_maximum, self.limits.maximum_inflight))
        self._withhold()

    def _withhold(self) -> None:
        """Send nothing again of what an earlier connection was sent and this one may not read.

        Such a message keeps its packet identifier: the client may know it by that.
        """
        if not self.inflight.resend and not self.inflight.withheld:
            return

        def readable(packet_id: int, span: Span) -> bool:
            return self.may_read(span.publication.topic_of(span.first + packet_id - span.packet_id))

        count = self.inflight.withhold(readable)
        if count:
            self.counters.add("tidegate/access/held_back", count)

    def detach(self) -> None:
        """Do without a connection: QoS 0 messages that waited for it are given up."""
        if self.connection is None:
            return
        self.connection = None
        if self.consumes:
            self._requeue()
        if len(self.inflight):
            self.inflight.charge(self.limits.memory)
        dropped = self.queue.remove_qos_0() if self.queue else 0
        if dropped:
            self.counters.add("publish/messages/dropped", dropped)
            self.note_drop("disconnected", dropped)

    def _requeue(self) -> None:
        """Return to channels what they gave and was not acknowledged."""
        for packet_id, span in list(self.inflight.items()):
            if span.channel is not None:
                self.inflight.remove((packet_id,), 0)
                span.channel.return_message(span, span.first + packet_id - span.packet_id)

    def persist_in(self, journal: Journal) -> None:
        """Let this journal take down what happens from now on, and hold what is not in memory."""
        self.journal = journal
        journal.serve(self.queue)

    def discard(self) -> None:
        """Give up what is still owed: the session has ended, and has no connection."""
        if self.conflated is not None:
            self.conflated.discard()
        if self.queue:
            self.queue.clear()
        if self._incoming is not None:
            self._incoming.clear()
        if len(self.inflight):
            self.inflight.refund(self.limits.memory)
            self.inflight = Inflight(self.limits.maximum_inflight)

    def for_other_members(self) -> list[Span]:
        """Return what another member of a shared subscription shall have when the session ends.

        That is what was not acknowledged at QoS 1, and what was not sent yet; [MQTT-4.8.2-5] not a
        QoS 2 message whose delivery has begun. What is on disk alone is not among it: see
        `Journal.close`.
        """
        begun = [
            span.part(span.first + packet_id - span.packet_id, 1)
            for packet_id, span in self.inflight.items()
            if span.qos == 1 and span.topic_filter
        ]
        return [*begun, *(span for span in self.queue if span.topic_filter)]

    def undelivered(self) -> list[Span]:
        """Return everything in memory that the session is still owed, in order."""
        return [*self.inflight.spans(), *self.queue]

    def finish(self, identifiers: Sequence[int], start: int, *, only_qos_1: bool = False) -> int:
        """Forget messages that need no further packet, and return how many that are.

        They are those of one span that the identifiers from `start` on name in order. What waits
        behind them is for `pump` to send. Returns -1 for a QoS 2 message where these are not meant.
        """
        packet_id = identifiers[start]
        span = self.inflight.find(packet_id)
        if span is None:
            return 0
        if only_qos_1 and span.qos != 1:
            return -1
        count = self.inflight.remove(identifiers, start)
        if span.channel is not None:
            span.channel.finished(span, span.first + packet_id - span.packet_id, count)
        elif self.journal is not NO_JOURNAL:
            self.journal.done(span, span.first + packet_id - span.packet_id, count)
        return count

    def drop(self, span: Span, number: int) -> None:
        """Forget a message that cannot be sent, the one with this number in its publication."""
        self.inflight.remove((span.packet_id + number - span.first,), 0)
        if span.channel is not None:
            span.channel.too_large(span, number)
        else:
            self.journal.done(span, number, 1)

    def release(self, packet_id: int, span: Span) -> int:
        """Note the PUBREC of a QoS 2 message; return the commit that its PUBREL waits for."""
        if packet_id in self.inflight.released:
            return self.journal.resent(span)
        self.inflight.release(packet_id)
        return self.journal.released(span)

    def drop_expired(self, now: float) -> int:
        """Give up what expired while it waited (`now` is monotonic seconds); return how many."""
        removed = self.queue.remove_expired(now)
        for span in removed:
            self.journal.done(span, span.first, span.count)
            self.note_drop("expired", span.count)
        return sum(span.count for span in removed)

    def note_drop(self, cause: str, count: int) -> None:
        """Count messages that its owner does not get."""
        if self.drops is None:
            self.drops = {}
        self.drops[cause] = self.drops.get(cause, 0) + count

    def readiness(self, qos: int, ahead: int = 0) -> Readiness:
        """Return what would become of a message of this QoS behind so many that are to come."""
        if self.ended:
            return Readiness.ENDED
        if self.ready(qos, ahead):
            return Readiness.READY
        if self.queue.over(max(1, ahead + 1 - self.inflight.limit + len(self.inflight))):
            return Readiness.FULL
        if self.connection is not None:
            return Readiness.WAITING
        return Readiness.AWAY if qos and self.persistent else Readiness.FULL

    def clear_connection(self) -> Connection | None:
        """Return the connection if nothing stands before a message that is sent on it now."""
        connection = self.connection
        if (
            connection is None
            or connection.output.size >= connection.maximum_unsent  # it is `congested`
            or self.queue.messages > self.queue.held_back  # order: what waits goes first
            or self.inflight.resend  # [MQTT-4.4.0-1]
        ):
            return None
        return connection

    def ready(self, qos: int, ahead: int = 0) -> bool:
        """Return whether a message of this QoS would be sent at once, behind so many others."""
        return self.clear_connection() is not None and (
            qos == 0 or self.inflight.has_capacity_behind(ahead)
        )

    def capacity(self, publication: Publication, first: int, most: int, qos: int) -> int:
        """Return how many messages, from number `first` on, are surely not lost on the session.

        That is `most` where the session may lose messages of this QoS.
        """
        if not overflow.must_hold(self, qos):
            return most
        waiting = self.queue.capacity(publication, first, most)
        if waiting >= most or self.clear_connection() is None:
            return waiting
        sent = self.inflight.capacity(publication, first, most)
        return (
            sent + self.queue.capacity(publication, first + sent, most - sent) if sent else waiting
        )

    def accept(
        self,
        publication: Publication,
        first: int,
        count: int,
        qos: int,
        retain: bool = False,
        subscription_identifiers: tuple[int, ...] = (),
        now: float = 0.0,
        promised: bool = False,
        topic_filter: str = "",
        policy: DeliveryPolicy | None = None,
    ) -> None:
        """Send messages, from number `first` on, queue them, or count them as dropped.

        They are `promised` if there was `room` for them before anybody got them. A shared
        subscription gave them to this session if `topic_filter` names one. What is sent may wait
        for more, as the `policy` of its subscription says, or that of the session's class.
        """
        if policy is None:
            policy = self.delivery.policy
        connection = None if self.unchecked else self.clear_connection()
        if connection is not None and self.traffic.bytes_sent >= self.traffic.queue_at:
            connection.on_output()  # it is sent when this connection is written to
            connection = None
        before = connection.output.size if policy.holds and connection is not None else -1
        if connection is not None and not qos:
            sending.send(
                self,
                connection,
                publication,
                first,
                count,
                0,
                retain,
                subscription_identifiers,
                None,
                now,
            )
        elif connection is None and self.connection is None and not (qos and self.persistent):
            return
        else:
            span = Span(
                publication, first, count, qos, retain, subscription_identifiers, topic_filter
            )
            # Their PUBRECs come one by one, and each is a row that must be on disk by itself.
            if qos == 2 and count > 1 and self.journal is not NO_JOURNAL:
                for number in range(first, first + count):  # each is released by itself
                    clear = None if connection is None else self.clear_connection()
                    self._accept(clear, span.part(number, 1), now, promised)
            else:
                self._accept(connection, span, now, promised)
            if self.unchecked:
                self._send_checked(now)
        # nothing is held by a window that is full: what would open it is the client's answer
        if before >= 0 and connection is not None and self.inflight.has_capacity:
            latest = held_until(publication, now)
            connection.output.hold(before, count, policy, now, latest)

    def _accept(
        self, connection: Connection | None, span: Span, now: float, promised: bool
    ) -> None:
        """Send as much of a span of QoS 1 or 2 as the window has room for, and queue the rest."""
        if connection is not None and span.qos:
            while True:
                count = self.inflight.capacity(span.publication, span.first, span.count)
                if not count:
                    break
                rest = None
                if count < span.count:
                    span, rest = span.split(count)
                if self.journal is not NO_JOURNAL:
                    self.journal.enqueue(span, span.qos == 1)
                self.inflight.add(span)
                sending.send(
                    self,
                    connection,
                    span.publication,
                    span.first,
                    span.count,
                    span.qos,
                    span.retain,
                    span.subscription_identifiers,
                    span,
                    now,
                    # what would come twice if the packet identifier were forgotten waits for it
                    self.journal.sent(span) if span.qos == 2 else 0,
                )
                if rest is None:
                    return
                span = rest
        overflow.enqueue(self, span, promised)

    def _send_checked(self, now: float) -> None:
        """Send what was queued to be asked about first, unless that has to wait."""
        connection = self.connection
        if connection is None or self.inflight.resend:
            return
        if self.traffic.bytes_sent >= self.traffic.queue_at:
            connection.on_output()
            return
        sending.send_waiting(self, connection, now)
        self.page_in()

    def pump(self, now: float) -> None:
        """Send what was not acknowledged, then what waits, as far as the connection allows."""
        connection = self.connection
        if connection is None:
            return
        if self.inflight.resend:
            sending.resend(self, connection, now)
        if self.queue.messages:
            sending.send_waiting(self, connection, now)
            self.page_in()  # behind the sending: what is asked for fills what that has emptied
        if self.on_capacity is not None:
            self.on_capacity(self, now)
        for channel in self.consumes:
            channel.pump(now)

    def page_in(self) -> None:
        """Let more of what is on disk alone be read, if it is time."""
        queue = self.queue
        if not queue.wants_page:
            return

        def take(spans: list[Span], complete: bool, now: float) -> None:
            queue.accept_page(spans, complete=complete)
            overflow.drop_oldest(self)
            self.pump(now)

        after, up_to = queue.begin_page()
        self.journal.load(after, up_to, take)

    @property
    def comes_soon(self) -> bool:
        """Whether what is queued last waits for no more than the acknowledgement of a window."""
        connection = self.connection
        return (
            connection is not None
            and not connection.congested
            and len(self.queue) < self.inflight.limit
        )


def held_until(publication: Publication, now: float) -> float:
    """Return the second until which messages may be held: in time before they expire."""
    expiry = publication.properties.expiry
    if expiry is None:
        return inf
    return now + min(EXPIRING, (publication.arrived + expiry - now) / 2)

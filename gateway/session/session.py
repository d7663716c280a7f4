"""One client's Session: its undelivered and unacknowledged messages."""

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
    """What would become of a message; the lowest is the best."""

    READY = 0  # it is sent at once
    WAITING = 1  # it waits in the queue
    AWAY = 2  # it waits for the client to reconnect
    FULL = 3  # it is dropped or refused
    ENDED = 4  # the session has ended and does not get it


EXPIRING = 1.0
"""Seconds for which an expiring message is held: its remaining interval is computed when queued."""


class Session:
    """The state that MQTT 5 section 4.1 calls the Session, and how messages are sent from it."""

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
        self.holder = ""  # the holder whose share its content counts to
        self.home: Origin = UNKNOWN  # of its first connection
        # the owner's rights at home: decide which messages it gets
        self.access: Access = EVERYTHING
        self.origin: Origin = UNKNOWN  # of its present or last connection
        # the rights of that connection: decide which messages are sent
        self.granted: Access = EVERYTHING
        self.unchecked = False  # each message is checked before it is sent
        self.connection: Connection | None = None
        self.journal: Journal = NO_JOURNAL
        self.drops: dict[str, int] | None = None  # messages that it lost, by cause
        self.ended = False  # its subscriptions may exist a while longer
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
        self.conflated: Session | None = None  # receives its messages once one is conflated
        # called with monotonic seconds when there may be capacity; set while a replay waits
        self.on_capacity: Callable[[Session, float], None] | None = None

    @property
    def persistent(self) -> bool:
        """True if the session outlives its network connection."""
        return self.expiry_interval > 0

    @property
    def has_incoming(self) -> bool:
        """Whether a PUBREL may arrive."""
        return self._incoming is not None and len(self._incoming) > 0

    @property
    def incoming(self) -> Incoming:
        """The client's QoS 2 messages that were accepted and not released yet."""
        if self._incoming is None:
            self._incoming = Incoming(self.limits.maximum_incoming, self.limits.memory)
        return self._incoming

    @property
    def will(self) -> Will | None:
        """Published if the connection ends abnormally, None if there is none or it was removed."""
        return self._will

    @will.setter
    def will(self, will: Will | None) -> None:
        before, self._will = self._will, will
        if before is not None:
            self.limits.memory.charge(-message_size(before))
        if will is not None:
            self.limits.memory.charge(message_size(will))

    def grant(self, access: Access, granted: Access) -> None:
        """Set the owner's rights at home, `access`, and those of the connection, `granted`.

        Queued messages are checked again; `pump` sends what may be read now.
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
        """Use this network connection from now on; `pump` sends what is queued."""
        self.connection = connection
        if self._incoming is not None:
            self._incoming.begin()
        if len(self.inflight):
            self.inflight.refund(self.limits.memory)
        self.inflight.begin(min(receive_maximum, self.limits.maximum_inflight))
        self._withhold()

    def _withhold(self) -> None:
        """Do not resend messages that this connection may not read.

        Such a message keeps its packet identifier, which the client may know.
        """
        if not self.inflight.resend and not self.inflight.withheld:
            return

        def readable(packet_id: int, span: Span) -> bool:
            return self.may_read(span.publication.topic_of(span.first + packet_id - span.packet_id))

        count = self.inflight.withhold(readable)
        if count:
            self.counters.add("tidegate/access/held_back", count)

    def detach(self) -> None:
        """Continue without a connection; queued QoS 0 messages are dropped."""
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
        """Return unacknowledged messages to their channels."""
        for packet_id, span in list(self.inflight.items()):
            if span.channel is not None:
                self.inflight.remove((packet_id,), 0)
                span.channel.return_message(span, span.first + packet_id - span.packet_id)

    def persist_in(self, journal: Journal) -> None:
        """Store all changes in this journal from now on, and the queue's tail."""
        self.journal = journal
        journal.serve(self.queue)

    def discard(self) -> None:
        """Drop all undelivered messages: the session has ended, and has no connection."""
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
        """Return what other members of a shared subscription get when the session ends.

        That is what was not acknowledged at QoS 1, and what was not sent yet; [MQTT-4.8.2-5] not a
        QoS 2 message whose delivery has begun. What is only on disk is not included: see
        `Journal.close`.
        """
        begun = [
            span.part(span.first + packet_id - span.packet_id, 1)
            for packet_id, span in self.inflight.items()
            if span.qos == 1 and span.topic_filter
        ]
        return [*begun, *(span for span in self.queue if span.topic_filter)]

    def undelivered(self) -> list[Span]:
        """Return all undelivered messages in memory, in order."""
        return [*self.inflight.spans(), *self.queue]

    def finish(self, identifiers: Sequence[int], start: int, qos: int = 0) -> int:
        """Forget messages that need no further packet, and return how many there are.

        They are the messages of one span with the consecutive identifiers from `start` on. `pump`
        then sends what is queued. With a `qos`, returns -1 for a message of another.
        """
        packet_id = identifiers[start]
        span = self.inflight.find(packet_id)
        if span is None:
            return 0
        if qos and span.qos != qos:
            return -1
        count = self.inflight.remove(identifiers, start)
        if span.channel is not None:
            span.channel.finished(span, span.first + packet_id - span.packet_id, count)
        elif self.journal is not NO_JOURNAL:
            self.journal.done(span, span.first + packet_id - span.packet_id, count)
        return count

    def forget(self, span: Span, first: int, count: int) -> None:
        """Forget queued messages that are not sent, from number `first` on."""
        self.journal.done(span, first, count)

    def drop(self, span: Span, number: int) -> None:
        """Forget a message that cannot be sent; `number` is its number in the publication."""
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
        """Drop what expired in the queue (`now` is monotonic seconds); return how many."""
        removed = self.queue.remove_expired(now)
        for span in removed:
            self.journal.done(span, span.first, span.count)
            self.note_drop("expired", span.count)
        return sum(span.count for span in removed)

    def note_drop(self, cause: str, count: int) -> None:
        """Count messages that the session lost."""
        if self.drops is None:
            self.drops = {}
        self.drops[cause] = self.drops.get(cause, 0) + count

    def readiness(self, qos: int, ahead: int = 0) -> Readiness:
        """Return what would become of a message of this QoS after `ahead` others."""
        if self.ended:
            return Readiness.ENDED
        if self.ready(qos, ahead):
            return Readiness.READY
        # of those `ahead`, the queue gets what the window has no space for
        if self.queue.over(max(1, ahead + 1 - self.inflight.limit + len(self.inflight))):
            return Readiness.FULL
        if self.connection is not None:
            return Readiness.WAITING
        return Readiness.AWAY if qos and self.persistent else Readiness.FULL

    def clear_connection(self) -> Connection | None:
        """Return the connection if a message can be sent on it at once, before any other."""
        connection = self.connection
        if (
            connection is None
            or connection.output.size >= connection.maximum_unsent  # it is `congested`
            or self.queue.messages > self.queue.held_back  # order: queued messages are sent first
            or self.inflight.resend  # [MQTT-4.4.0-1]
        ):
            return None
        return connection

    def ready(self, qos: int, ahead: int = 0) -> bool:
        """Return whether a message of this QoS would be sent at once, after `ahead` others."""
        return self.clear_connection() is not None and (
            qos == 0 or self.inflight.has_capacity_after(ahead)
        )

    def capacity(self, publication: Publication, first: int, most: int, qos: int) -> int:
        """Return how many messages, from number `first` on, the session surely does not lose.

        Returns `most` if the session may lose messages of this QoS.
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
        reserved: bool = False,
        topic_filter: str = "",
        policy: DeliveryPolicy | None = None,
    ) -> None:
        """Send messages, from number `first` on, queue them, or count them as dropped.

        They are `reserved` if `capacity` allowed them before anyone got them. `topic_filter` names
        the shared subscription that chose this session, if any. Sent messages may be held for
        others, as the `policy` of the subscription or of the session's class says.
        """
        # not split: every message to every receiver comes here, and a call would cost as much again
        if policy is None:
            policy = self.delivery.policy
        connection = None if self.unchecked else self.clear_connection()
        if connection is not None and self.traffic.bytes_sent >= self.traffic.queue_at:
            # the messages are queued and sent when this connection is written to
            connection.on_output()
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
        # QoS 0, or a session that ends with its connection: nothing is queued without one
        elif connection is None and self.connection is None and not (qos and self.persistent):
            return
        else:
            span = Span.__new__(Span)
            span.fill(
                publication, first, count, qos, retain, subscription_identifiers, topic_filter
            )
            # Their PUBRECs arrive one by one, and each makes a row of its own.
            if qos == 2 and count > 1 and self.journal is not NO_JOURNAL:
                for number in range(first, first + count):  # each is released separately
                    clear = None if connection is None else self.clear_connection()
                    self._accept(clear, span.part(number, 1), now, reserved)
            else:
                self._accept(connection, span, now, reserved)
            if self.unchecked:
                self._send_checked(now)
        # if the window is full, only the client's acknowledgement can open it: nothing may be held
        if before >= 0 and connection is not None and self.inflight.has_capacity:
            latest = held_until(publication, now)
            connection.output.hold(before, count, policy, now, latest)

    def _accept(
        self, connection: Connection | None, span: Span, now: float, reserved: bool
    ) -> None:
        """Send as much of a span of QoS 1 or 2 as fits into the window, and queue the rest."""
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
                    # the identifier must be stored first: a crash that forgot it would send the
                    # message twice
                    self.journal.sent(span) if span.qos == 2 else 0,
                )
                if rest is None:
                    return
                span = rest
        overflow.enqueue(self, span, reserved)

    def _send_checked(self, now: float) -> None:
        """Send messages that were queued to be checked first, unless they must wait."""
        connection = self.connection
        if connection is None or self.inflight.resend:
            return
        if self.traffic.bytes_sent >= self.traffic.queue_at:
            connection.on_output()
            return
        sending.send_waiting(self, connection, now)
        self.page_in()

    def pump(self, now: float) -> None:
        """Send unacknowledged messages, then the queue, within the connection's limits."""
        connection = self.connection
        if connection is None:
            return
        if self.inflight.resend:
            sending.resend(self, connection, now)
        if self.queue.messages:
            sending.send_waiting(self, connection, now)
            self.page_in()  # after sending, which may have emptied the head that this fills
        if self.on_capacity is not None:
            self.on_capacity(self, now)
        for channel in self.consumes:
            channel.pump(now)

    def page_in(self) -> None:
        """Have the next page of the tail read, if it is time."""
        queue = self.queue
        if not queue.wants_page:
            return

        def on_page(spans: list[Span], complete: bool, now: float) -> None:
            queue.accept_page(spans, complete=complete)
            # newer messages were accepted in exchange for old ones that were only on disk until now
            overflow.drop_oldest(self)
            self.pump(now)

        after, up_to = queue.begin_page()
        self.journal.load(after, up_to, on_page)

    @property
    def comes_soon(self) -> bool:
        """Whether the last queued message waits for no more than one window's acknowledgements."""
        connection = self.connection
        return (
            connection is not None
            and not connection.congested
            and len(self.queue) < self.inflight.limit
        )


def held_until(publication: Publication, now: float) -> float:
    """Return the second until which messages may be held: half of their time before they expire."""
    expiry = publication.properties.expiry
    if expiry is None:
        return inf
    return now + min(EXPIRING, (publication.arrived + expiry - now) / 2)

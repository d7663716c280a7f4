"""One client's side of the conversation: what it is owed and was sent."""

from collections.abc import Callable
from typing import cast

from gateway.counters import Counters
from gateway.mqtt.connection import MAXIMUM_UNSENT, Connection
from gateway.mqtt.message_size import will_size
from gateway.mqtt.packets import Will
from gateway.session import overflow, sending
from gateway.session.delivery import Delivery, SharedDelivery
from gateway.session.delivery_queue import DeliveryQueue
from gateway.session.durability_class import COMMIT
from gateway.session.incoming import Incoming
from gateway.session.inflight import Inflight
from gateway.session.inflight_message import Sent, hold, release
from gateway.session.journal import NO_JOURNAL, Journal
from gateway.session.limits import SessionLimits
from gateway.session.readiness import Readiness
from gateway.session.templates import Templates
from gateway.session.traffic import Traffic
from gateway.session.waiting_run import Waiting

NEVER = 0xFFFFFFFF
"""A Session Expiry Interval that does not end (MQTT 5, section 3.1.2.11.2)."""


class Session:
    """The state that MQTT 5 section 4.1 calls the Session, and how messages leave it."""

    __slots__ = (
        "_incoming",
        "_will",
        "client_id",
        "connection",
        "counters",
        "durability_class",
        "expiry_interval",
        "inflight",
        "journal",
        "limits",
        "on_room",
        "queue",
        "traffic",
        "username",
    )

    asks_filters = False  # a client is not told which of its topic filters matched

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
        self.connection: Connection | None = None
        self.journal: Journal = NO_JOURNAL
        self.expiry_interval = 0
        self.durability_class = COMMIT
        self.queue = DeliveryQueue(
            limits.maximum_queued_messages, limits.maximum_queued_bytes, limits.memory
        )
        self.inflight = Inflight(limits.maximum_inflight)
        self._incoming: Incoming | None = None  # made with the first QoS 2 message
        self._will: Will | None = None
        # called with monotonic seconds when there may be room for more; set while more waits
        self.on_room: Callable[[Session, float], None] | None = None

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
            self.limits.memory.charge(-will_size(before))
        if will is not None:
            self.limits.memory.charge(will_size(will))

    def attach(self, connection: Connection, receive_maximum: int) -> None:
        """Use this network connection from now on; `pump` sends what waits for it."""
        self.connection = connection
        if self._incoming is not None:
            self._incoming.begin()
        if len(self.inflight):
            release(self.inflight, self.limits.memory)
        self.inflight.begin(min(receive_maximum, self.limits.maximum_inflight))

    def detach(self) -> None:
        """Do without a connection: QoS 0 messages that waited for it are given up."""
        if self.connection is None:
            return
        self.connection = None
        if len(self.inflight):
            hold(self.inflight, self.limits.memory)
        dropped = self.queue.remove_qos_0() if self.queue else 0
        if dropped:
            self.counters.add("publish/messages/dropped", dropped)

    def keep_in(self, journal: Journal) -> None:
        """Let this journal take down what happens from now on, and hold what is not in memory."""
        self.journal = journal
        journal.serve(self.queue)

    def discard(self) -> None:
        """Give up what is still owed: the session has ended, and has no connection."""
        if self.queue:
            self.queue.clear()
        if self._incoming is not None:
            self._incoming.clear()
        if len(self.inflight):
            release(self.inflight, self.limits.memory)
            self.inflight = Inflight(self.limits.maximum_inflight)

    def left_over(self) -> list[SharedDelivery]:
        """Return what another member of a shared subscription shall have when the session ends.

        That is what was not acknowledged at QoS 1, and what was not sent yet; [MQTT-4.8.2-5] not a
        QoS 2 message whose delivery has begun. What is on disk alone is not among it: see
        `Journal.close`.
        """
        if not len(self.inflight) and not self.queue:
            return []
        begun = [message.delivery for message in self.inflight if message.delivery.qos == 1]
        owed = [*begun, *self.queue]
        return [delivery for delivery in owed if isinstance(delivery, SharedDelivery)]

    def finish(self, packet_id: int, message: Sent, now: float) -> None:
        """Forget a message that needs no further packet, and send what waits behind it."""
        self.drop(packet_id, message.delivery)
        self.pump(now)

    def drop(self, packet_id: int, delivery: Delivery) -> None:
        """Forget a message that was sent, or cannot be."""
        self.inflight.remove(packet_id)
        self.journal.done(delivery)

    def release(self, message: Sent) -> int:
        """Note the PUBREC of a QoS 2 message; return the mark that its PUBREL waits for."""
        if message.released:
            return self.journal.again(message.delivery)
        message.released = True
        return self.journal.released(message.delivery)

    def drop_expired(self, now: float) -> int:
        """Give up what expired while it waited (`now` is monotonic seconds); return how many."""
        removed = self.queue.remove_expired(now)
        for delivery in removed:
            self.journal.done(delivery)
        return len(removed)

    def readiness(self, qos: int) -> Readiness:
        """Return what would become of a message of this QoS."""
        if self.ready(qos):
            return Readiness.READY
        if self.queue.full:
            return Readiness.FULL
        if self.connection is not None:
            return Readiness.WAITING
        return Readiness.AWAY if qos and self.persistent else Readiness.FULL

    def clear_connection(self) -> Connection | None:
        """Return the connection if nothing stands before a message that is sent on it now."""
        connection = self.connection
        if (
            connection is None
            or connection.output.size >= MAXIMUM_UNSENT  # it is `congested`
            or self.queue
            or self.inflight.to_send_again
        ):
            return None
        return connection

    def ready(self, qos: int) -> bool:
        """Return whether a message of this QoS would be sent at once."""
        return self.clear_connection() is not None and (qos == 0 or self.inflight.has_room)

    def has_room(self, qos: int) -> bool:
        """Return False if a message of this QoS would be lost, which the session must not lose."""
        return not self.queue.full or not overflow.must_keep(self, qos) or self.ready(qos)

    def deliver(
        self, delivery: Delivery, templates: Templates, now: float, *, promised: bool = False
    ) -> None:
        """Send the delivery, queue it, or count it as dropped.

        It is `promised` if there was room for it before others got the same message.
        """
        connection = self.clear_connection()
        if connection is None:
            if self.connection is not None or (delivery.qos and self.persistent):
                self._enqueue(delivery, promised)
        elif delivery.qos == 0:
            sending.send_one(self, connection, delivery, templates, 0, now)
        elif self.inflight.has_room:
            self._lend(delivery)
            sending.send_counted(self, connection, delivery, templates, now)
        else:
            self._enqueue(delivery, promised)

    def send_run(
        self, data: bytes | bytearray, count: int, payload_bytes: int, at_once: bool = False
    ) -> None:
        """Send `count` packets on the connection, with so many bytes of payload, and count them.

        They leave `at_once` if nothing is to leave before them.
        """
        connection, traffic = cast("Connection", self.connection), self.traffic
        if at_once and connection.output.leave_at_once(data):
            connection.packets_sent += count
            traffic.network_sent += len(data)
        else:
            connection.send_run(data, count)
        traffic.messages_sent += count
        traffic.bytes_sent += payload_bytes

    def _lend(self, delivery: Delivery) -> None:
        """Keep a delivery that is about to be sent; an acknowledgement at once spares the disk."""
        if delivery.qos == 1:
            self.journal.lend(delivery)
        else:
            self.journal.owe(delivery)

    def pump(self, now: float) -> None:
        """Send what was not acknowledged, then what waits, as far as the connection allows."""
        connection = self.connection
        if connection is None:
            return
        if self.inflight.to_send_again:
            sending.send_again(self, connection, now)
        if self.queue:
            sending.send_waiting(self, connection, now)
            self.page_in()
        if self.on_room is not None:
            self.on_room(self, now)

    def page_in(self) -> None:
        """Let more of what is on disk alone be read, if it is time."""
        queue = self.queue
        if not queue.wants_page:
            return

        def take(deliveries: list[Waiting], complete: bool, now: float) -> None:
            queue.take_page(deliveries, complete=complete)
            overflow.drop_oldest(self)
            self.pump(now)

        after, up_to = queue.begin_page()
        self.journal.load(after, up_to, take)

    def _enqueue(self, delivery: Delivery, promised: bool) -> None:
        promised = promised and overflow.must_keep(self, delivery.qos)
        if self.queue.full and not promised and not overflow.makes_room(self, delivery):
            return
        if delivery.qos and self._comes_soon:
            self._lend(delivery)
        elif delivery.qos:
            self.journal.owe(delivery)
        self.queue.restore(delivery)

    @property
    def _comes_soon(self) -> bool:
        """Whether what is queued last waits for no more than the acknowledgement of a window."""
        connection = self.connection
        return (
            connection is not None
            and not connection.congested
            and len(self.queue) < self.inflight.limit
        )

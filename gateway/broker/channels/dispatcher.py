"""Sends a channel's messages to its consumers."""

from gateway.broker.channels.consumers import (
    Consumers,
    NobodyMayHaveItNow,
    NobodyWantsIt,
    session_of,
)
from gateway.broker.channels.dead_letters import DeadLetters
from gateway.broker.channels.deliveries import Deliveries
from gateway.broker.channels.figures import ChannelFigures
from gateway.broker.channels.stamps import Stamps
from gateway.broker.channels.waiting import Offer, Waiting
from gateway.mqtt.connection import Connection
from gateway.mqtt.packets import MQTT_5
from gateway.routing.subscriptions.subscription import Subscription
from gateway.session.sending import send
from gateway.session.session import Session, held_until
from gateway.session.span import Span
from gateway.settings.channel import ChannelSettings


class Dispatcher:
    """Gives each message to one consumer with capacity, while there is one.

    `channel` has the journal and the counters.
    """

    __slots__ = (
        "_channel",
        "_consumers",
        "_dead_letters",
        "_deliveries",
        "_figures",
        "_stamps",
        "_waiting",
        "settings",
    )

    def __init__(
        self,
        channel: Session,
        settings: ChannelSettings,
        figures: ChannelFigures,
        waiting: Waiting,
        consumers: Consumers,
        deliveries: Deliveries,
        dead_letters: DeadLetters,
    ) -> None:
        self._channel = channel
        self.settings = settings
        self._figures = figures
        self._waiting = waiting
        self._consumers = consumers
        self._deliveries = deliveries
        self._dead_letters = dead_letters
        self._stamps = Stamps()

    def dispatch_new(self, span: Span, now: float) -> int:
        """Dispatch new messages ahead of the queue; return how many.

        No consumer may refuse them. They are stored until consumers acknowledge them.
        """
        consumers, count = self._consumers, span.count
        member = consumers.choose(span.publication, span.first, None, 0)
        if member is None:
            return 0
        if span.qos:
            self._channel.journal.enqueue(span, deferred=True)
        share, given = consumers.share(count), 0
        if share < count and span.publication.forms is None:
            span.publication.share_forms()
        while member is not None:
            first = span.first + given
            fitting = self._capacity(span, first, min(share, count - given), member)
            self._dispatch(span if fitting == count else span.part(first, fitting), member, 0, now)
            given += fitting
            if given == count:
                break
            member = consumers.choose(span.publication, span.first + given, None, 0)
        return given

    def dispatch_next(self, now: float) -> bool:
        """Dispatch or drop the next message; return False if it must wait, or there is none."""
        waiting, figures = self._waiting, self._figures
        offer = waiting.first(now)
        if offer is None:
            return False
        span = offer.span
        if self._has_expired(span, now):
            self._channel.counters.add("publish/messages/expired", span.count)
            self.expire(waiting.pop(span.count), offer.attempts)
            return True
        if self.settings.is_last(offer.attempts):
            self._dead_letters.add(Offer(waiting.pop(1), offer.attempts, None))
            return True
        try:
            member = self._consumers.choose(span.publication, span.first, offer.avoid, offer.above)
        except NobodyMayHaveItNow:
            return waiting.hold_back(offer)
        except NobodyWantsIt:
            if offer.above:
                figures.too_large += 1
                self._dead_letters.add(Offer(waiting.pop(1), offer.attempts, None, offer.above))
            else:
                figures.filtered += 1
                self._give_up(waiting.pop(1))
            return True
        if member is None:
            return False
        count = 1
        # else each message has its own number of attempts
        if span.count > 1 and not waiting.earlier.counted:
            count = self._consumers.share(span.count)
        count = self._capacity(span, span.first, count, member)
        self._dispatch(waiting.pop(count), member, offer.attempts, now)
        return True

    def _capacity(self, span: Span, first: int, most: int, member: Subscription) -> int:
        """Return how many messages, from number `first` on, a consumer with capacity accepts."""
        if not min(span.qos, member.qos):
            return most
        return session_of(member).inflight.capacity(span.publication, first, most)

    def _has_expired(self, span: Span, now: float) -> bool:
        publication, age = span.publication, self.settings.maximum_age
        return publication.expired(now) or 0 < age <= now - publication.arrived

    def expire(self, span: Span, attempts: int) -> None:
        """Drop messages that have waited too long, or make dead letters of them."""
        self._figures.expired += span.count
        if not self.settings.dead_letter_expired:
            self._give_up(span)
            return
        for number in range(span.first, span.first + span.count):
            self._dead_letters.add(Offer(span.part(number, 1), attempts, None))

    def expire_first(self, now: float) -> int:
        """Expire what has waited too long, from the front on; return how many messages."""
        waiting, expired = self._waiting, 0
        while (offer := waiting.any()) is not None and self._has_expired(offer.span, now):
            count = offer.span.count
            span = waiting.remove(offer, count)
            self.expire(span, offer.attempts)
            expired += count
        return expired

    def _give_up(self, span: Span) -> None:
        self._channel.forget(span, span.first, span.count)

    def _dispatch(self, source: Span, member: Subscription, attempts: int, now: float) -> None:
        """Send messages to a consumer, or hold them back as its delivery policy says."""
        consumer = session_of(member)
        connection = consumer.connection
        assert connection is not None  # noqa: S101 - only connected consumers are chosen
        policy = consumer.delivery.policy if member.delivery is None else member.delivery
        before = connection.output.size
        self._send(source, member, consumer, connection, attempts, now)
        if policy.holds and consumer.inflight.has_capacity:
            latest = min(
                held_until(source.publication, now), now + self.settings.inflight_timeout / 2
            )
            connection.output.hold(before, source.count, policy, now, latest)

    def _send(
        self,
        source: Span,
        member: Subscription,
        consumer: Session,
        connection: Connection,
        attempts: int,
        now: float,
    ) -> None:
        """Send messages to a consumer; those above QoS 0 wait for its acknowledgement."""
        publication, first, count = source.publication, source.first, source.count
        qos = min(source.qos, member.qos)  # `_capacity` has found packet identifiers
        retain = source.retain and member.retain_as_published
        identifiers = () if member.identifier is None else (member.identifier,)
        sent = Span(publication, first, count, qos, retain, identifiers)
        self._figures.delivered += count
        commit = 0
        if qos:
            # noted before it is sent, since the message might crash the gateway each time
            values = self._waiting.last_values
            waits = values is not None and not values.may_send(source)
            noted = self._waiting.earlier.may_be_dispatched(source)
            self._deliveries.begin(source, sent, consumer, attempts + 1, now, noted)
            if noted or waits:
                commit = self._channel.journal.resent(source)
            consumer.inflight.add(sent)
        if connection.version != MQTT_5 or not self._stamps.send(
            consumer, connection, source, sent, attempts + 1, now, commit
        ):
            span = sent if qos else None
            send(
                *(consumer, connection, publication, first, count, qos, retain, identifiers),
                *(span, now, commit),
            )
        if not qos:
            self._figures.sent_at_qos_0(publication.arrived, count)
            self._figures.note_latencies(now)
            self._give_up(source)

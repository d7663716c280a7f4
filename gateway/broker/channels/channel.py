"""A channel: a shared subscription whose messages wait in a queue of its own."""

from collections.abc import Callable, Collection, Iterable, Mapping
from math import inf
from typing import TYPE_CHECKING

from gateway.broker.channels import coming_back
from gateway.broker.channels.consumers import Consumers, NobodyWantsIt, session_of
from gateway.broker.channels.deliveries import Deliveries, Delivery
from gateway.broker.channels.figures import ChannelFigures
from gateway.broker.channels.message_sizes import alike_in_size
from gateway.broker.channels.returned import Returned, ReturnedMessages
from gateway.broker.channels.settings import ChannelSettings, Choice
from gateway.mqtt.delivery_policy import DeliveryPolicy
from gateway.mqtt.publication import Publication
from gateway.mqtt.publish_encoder import publication_of
from gateway.mqtt.topics import topic_matches
from gateway.routing.subscriptions.subscription import Subscription
from gateway.routing.where.evaluation.message import make_message
from gateway.session import continuation, sending
from gateway.session.journal import NO_JOURNAL
from gateway.session.kept import KeptSession
from gateway.session.limits import SessionLimits
from gateway.session.queue import overflow
from gateway.session.session import NEVER, Session
from gateway.session.span import Span

if TYPE_CHECKING:
    from gateway.broker.broker import Broker

ATTEMPT = "attempt"
"""The user property of a message that a consumer gets again: how many times it was given out."""

PREFIX = "$channel/"
"""What the names of channels in the database begin with, and no client identifier may."""


class Channel(Session):
    """A session without a client, whose messages go to the consumers of its group.

    As a session it has a queue, of which the head is in memory and the rest on disk, and a journal
    that brings it back after a restart. What consumers have not acknowledged stays in the journal.
    `wake` is called when there is something to do at a later second. Messages of topics that match
    `paused_filters` are put aside.
    """

    __slots__ = (
        "_acknowledged",
        "_attempts",
        "_unsure",
        "consumers",
        "dead_letters",
        "deliveries",
        "figures",
        "paused",
        "paused_filters",
        "returned",
        "settings",
        "unnoted",
        "wake",
        "wakes_at",
    )

    def __init__(self, broker: "Broker", settings: ChannelSettings) -> None:
        limits = SessionLimits(
            maximum_queued_messages=(
                settings.memory_messages if settings.temporary else settings.maximum_messages
            ),
            maximum_queued_bytes=settings.disk_bytes,
            when_full=settings.when_full,
            memory=broker.queue_memory,
        )
        name = f"{PREFIX}{settings.name}/{settings.topic_filter}"
        super().__init__(name, broker.counters, limits, broker.traffic)
        self.queue.head_messages = settings.memory_messages
        self.settings = settings
        self.figures = ChannelFigures()
        self.consumers: Consumers  # whoever makes the channel says who they are
        self.paused = False
        self.wakes_at = inf  # the monotonic second that `wake` was called with
        self.wake: Callable[[float], None] = lambda second: None  # noqa: ARG005 - keeps the name
        self.dead_letters: list[tuple[Span, int]] = []  # to be published, with their attempts
        self.paused_filters: Collection[str] = ()
        self.returned = ReturnedMessages(settings.memory_messages)
        self.deliveries = Deliveries()
        self.unnoted = False  # of them some may be to be noted
        self._attempts: Mapping[int, int] = {}  # of messages by sequence number, on disk
        self._unsure = 0  # up to here an earlier run may have given messages out, and not noted it
        self._acknowledged: list[tuple[float, int]] = []  # when they came, and how many came then

    @property
    def depth(self) -> int:
        """How many messages wait for a consumer."""
        return self.queue.messages + len(self.returned)

    @property
    def in_flight(self) -> int:
        """How many messages consumers have and did not acknowledge."""
        return sum(each.left for each in self.deliveries)

    @property
    def attempts(self) -> int:
        """How often the message was given out that was most often, of those in flight or back."""
        return max((each.attempts for each in (*self.deliveries, *self.returned)), default=0)

    def oldest(self, now: float) -> float:
        """Return how many seconds the oldest message in memory has waited or been in flight."""
        spans = [each.source for each in self.deliveries]
        spans += [each.span for each in self.returned]
        first = self.queue.first()
        if first is not None:
            spans.append(first)
        return max((now - span.publication.arrived for span in spans), default=0.0)

    @property
    def comes_soon(self) -> bool:
        """Whether a consumer gets at once what is queued last, and may so spare the disk."""
        return not self.paused and not len(self.returned) and self.consumers.have_room

    def restore(self, kept: KeptSession) -> None:
        """Take up what an earlier run left."""
        self.expiry_interval = NEVER
        self.keep_in(kept.journal)
        self._attempts = kept.attempts
        self._unsure = kept.spans[-1].span.last if kept.spans else 0
        continuation.restore(self, kept.spans, kept.tail, connected=False)
        if kept.attempts:
            self.wake(0.0)  # some may have been given out for the last time

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
        topic_filter: str = "",  # noqa: ARG002 - a session's shape
        policy: DeliveryPolicy | None = None,  # noqa: ARG002 - likewise
    ) -> None:
        """Queue messages, and give consumers what they have room for."""
        while count:
            fits, alike = alike_in_size(publication, self.settings, first, count)
            if fits:
                qos = min(qos, 1)
                span = Span(publication, first, alike, qos, retain, subscription_identifiers)
                self.figures.received += alike
                if self._is_clear(span, promised):
                    self._give_at_once(span, promised, now)
                else:
                    self._queue(span, promised)
            else:
                self.figures.outside_size += alike
            first += alike
            count -= alike
        self.pump(now)

    def room(self, publication: Publication, first: int, most: int, qos: int) -> int:
        """Return how many messages are surely kept, or are none that the channel takes."""
        fits, alike = alike_in_size(publication, self.settings, first, most)
        return Session.room(self, publication, first, alike, qos) if fits else alike

    def _is_clear(self, span: Span, promised: bool) -> bool:
        """Whether nothing stands before what comes now, all consumers want it, and it is kept."""
        return (
            not self.queue.messages
            and not self.paused
            and not self.paused_filters
            and not len(self.returned)
            and self.settings.choice is not Choice.STICKY
            and not self.consumers.ask
            and span.publication.properties.expiry is None
            and (self.journal is NO_JOURNAL or (promised and overflow.must_keep(self, span.qos)))
        )

    def _queue(self, span: Span, promised: bool) -> None:
        before = self.queue.messages
        overflow.enqueue(self, span, promised)
        self.figures.dropped += before + span.count - self.queue.messages

    def _give_at_once(self, span: Span, promised: bool, now: float) -> None:
        """Give messages to consumers, as far as they have room, and queue the rest."""
        member = self.consumers.choose(span.publication, span.first, None)
        if member is None:
            self._queue(span, promised)
            return
        if span.qos:
            self.journal.owe(span, deferred=True)
        share, given = self.consumers.share(span.count), 0
        if share < span.count and span.publication.forms is None:
            span.publication.share_forms()
        while member is not None:
            part = span.part(span.first + given, min(share, span.count - given))
            part.count = self._room(part, member)
            self._give(part, member, 0, now)
            given += part.count
            if given == span.count:
                return
            member = self.consumers.choose(span.publication, span.first + given, None)
        _, rest = span.split(given)
        if rest.row is None:
            self._queue(rest, promised)
        else:
            self.queue.append(rest)

    def pump(self, now: float) -> None:
        """Give consumers what they have room for, in the order in which it came."""
        for arrived, count in self._acknowledged:
            self.figures.note_latency(now - arrived, count)
        self._acknowledged.clear()
        while not self.paused and self._send_next(now):
            pass
        self.page_in()
        first = self.deliveries.first()
        if first is not None:
            self.wake(min(first.due, now + coming_back.NOTED_AFTER) if self.unnoted else first.due)

    def _send_next(self, now: float) -> bool:
        """Give out, or give up, what is next; return False if it has to wait, or there is none."""
        returned = self.returned.first()
        span = self.queue.first() if returned is None else returned.span
        if span is None:
            return False
        if span.publication.expired(now):
            self.figures.expired += span.count
            self.counters.add("publish/messages/expired", span.count)
            self._give_up(self._take(span.count))
            return True
        if self.paused_filters and self._is_paused(span):
            return self._hold()
        attempts, avoid = self._known(span), None
        if returned is not None:
            attempts, avoid = returned.attempts, returned.avoid
        if attempts and self.is_last(attempts):
            self.bury(self._take(1), attempts)
            return True
        try:
            member = self.consumers.choose(span.publication, span.first, avoid)
        except NobodyWantsIt:
            self.figures.filtered += 1
            self._give_up(self._take(1))
            return True
        if member is None:
            return False
        if span.count > 1:
            count = 1 if self._attempts else self.consumers.share(span.count)
            span = span.part(span.first, count)
        self._give(self._take(self._room(span, member)), member, attempts, now)
        return True

    def _room(self, span: Span, member: Subscription) -> int:
        """Return how many messages of a span a consumer takes that has room for one."""
        if not min(span.qos, member.qos):
            return span.count
        return session_of(member).inflight.room(span.publication, span.first, span.count)

    def _known(self, span: Span) -> int:
        """Return how often an earlier run gave out the first message of a span."""
        return self._attempts.get(span.sequence, 0) if self._attempts else 0

    def _is_paused(self, span: Span) -> bool:
        topic = span.publication.topic_of(span.first)
        return any(topic_matches(each, topic) for each in self.paused_filters)

    def _hold(self) -> bool:
        """Put the next message aside; return False if there is no room, and all wait behind it."""
        if not self.returned.holds_more:
            return False
        if self.returned.first() is None:
            span = self.queue.take(1)
            self.returned.put(Returned(span, self._known(span), None))
        self.returned.hold(self.returned.pop())
        return True

    def go_on(self) -> None:
        """Give out what was put aside and whose topic is not paused any more."""
        self.returned.resume(self._is_paused)
        self.wake(0.0)

    def _take(self, count: int) -> Span:
        """Remove and return the first so many messages of what is next."""
        if self.returned.first() is None:
            return self.queue.take(count)
        return self.returned.pop().span

    def _give_up(self, span: Span) -> None:
        self.journal.done(span, span.first, span.count)

    def _give(self, source: Span, member: Subscription, attempts: int, now: float) -> None:
        """Send messages to a consumer, which is to acknowledge them unless they are of QoS 0."""
        consumer = session_of(member)
        connection = consumer.connection
        assert connection is not None  # noqa: S101 - it was chosen for having room
        publication, first, count = source.publication, source.first, source.count
        if attempts:
            publication, first = _marked(publication, first, attempts + 1), 0
        qos = min(source.qos, member.qos)  # `_room` has found packet identifiers
        retain = source.retain and member.retain_as_published
        identifiers = () if member.identifier is None else (member.identifier,)
        self.figures.delivered += count
        if not qos:
            sending.send(
                consumer, connection, publication, first, count, 0, retain, identifiers, None, now
            )
            self._note_acknowledged(publication, count)
            self._give_up(source)
            return
        sent = Span(publication, first, count, qos, retain, identifiers)
        sent.channel = self
        unsure = 0 < source.sequence <= self._unsure
        due = now + self.settings.inflight_timeout
        delivery = Delivery(source, sent, consumer, attempts + 1, now, due, unsure)
        commit = 0
        if unsure:  # a message that ends the gateway as soon as it is out must be noted before
            self.note_attempts(delivery, range(first, first + count))
            commit = self.journal.resent(source)
        elif source.row is not None:
            self.unnoted = True
        self.deliveries.add(delivery)
        sending.send_span(consumer, connection, sent, now, commit)

    def note_attempts(self, delivery: Delivery, numbers: Iterable[int]) -> None:
        """Have it noted how often these messages of a delivery were given out."""
        for number in numbers:
            self.journal.attempted(delivery.source, delivery.original(number), delivery.attempts)

    def finished(self, span: Span, number: int, count: int) -> None:
        """Forget messages that a consumer acknowledged, or whose packet it cannot take."""
        delivery = self.deliveries.find(span)
        if delivery is None:  # they have timed out, and others have got them
            return
        self._note_acknowledged(span.publication, count)
        self.journal.done(delivery.source, delivery.original(number), count)
        self.deliveries.settle(delivery, count)

    def given_back(self, span: Span, number: int) -> None:
        """Give a message to another consumer: this one's connection has ended, or it refuses it."""
        delivery = self.deliveries.find(span)
        if delivery is not None:
            self.figures.requeued += 1
            coming_back.give_back(self, delivery, number)
            self.deliveries.settle(delivery, 1)
            self.wake(0.0)

    def _note_acknowledged(self, publication: Publication, count: int) -> None:
        self.figures.acknowledged += count
        self._acknowledged.append((publication.arrived, count))

    def is_last(self, attempts: int) -> bool:
        """Return whether a message that was given out so many times is given up."""
        return 0 < self.settings.max_attempts <= attempts

    def bury(self, span: Span, attempts: int) -> None:
        """Put a message among the dead letters, which are looked after next."""
        self.dead_letters.append((span, attempts))
        self.wake(0.0)

    def put_back(self, span: Span, attempts: int) -> None:
        """Let a message be given out once more; `time_out` is to look at it next."""
        self.returned.put(Returned(span, attempts, None))

    def owed(self) -> list[Span]:
        """Return everything in memory that waits or is in flight."""
        given = [each.source for each in self.deliveries]
        return [*given, *(each.span for each in self.returned), *self.queue]

    def discard(self) -> None:
        """Forget everything that waits or is in flight; the journal is closed, or there is none."""
        self.figures.dropped += self.depth + self.in_flight
        self.returned.clear()
        self.deliveries.clear()
        self.dead_letters.clear()
        self._attempts, self._unsure = {}, 0
        super().discard()


def _marked(publication: Publication, number: int, attempt: int) -> Publication:
    """Return one message with the number of the attempt among its user properties."""
    message = make_message(publication, number)
    message.user_properties = (*message.user_properties, (ATTEMPT, str(attempt)))
    return publication_of(message)

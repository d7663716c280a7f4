"""Messages of a channel in flight: acknowledgement, timeout and return."""

from collections.abc import Callable, Iterator
from itertools import takewhile
from math import inf

from gateway.broker.channels.alarm import Alarm
from gateway.broker.channels.figures import ChannelFigures
from gateway.broker.channels.stamps import message_id
from gateway.broker.channels.waiting import Offer, ReturnedMessages
from gateway.mqtt.publication import Publication
from gateway.session.session import Session
from gateway.session.span import Span

NOTED_AFTER = 1.0
"""Seconds in flight after which an attempt is noted on disk: few messages take so long."""

_NOTED_AFTER = NOTED_AFTER  # compiled, a C name


class Delivery:
    """Messages that a consumer got together and has not all acknowledged.

    `source` is the span of the channel's queue, `sent` the consumer's: both have the same messages
    of a publication. They were dispatched at the monotonic second `given` and time out at `due`.
    `noted` is True once the channel's journal knows of the attempt. `oldest` is the first packet
    identifier in the consumer's window when they timed out and stayed, 0 before.
    """

    __slots__ = (
        "attempts",
        "consumer",
        "due",
        "given",
        "noted",
        "oldest",
        "remaining",
        "sent",
        "source",
    )

    def __init__(
        self,
        source: Span,
        sent: Span,
        consumer: Session,
        attempts: int,
        given: float,
        due: float,
        noted: bool,
    ) -> None:
        self.source = source
        self.sent = sent
        self.consumer = consumer
        self.attempts = attempts
        self.given = given
        self.due = due
        self.noted = noted
        self.oldest = 0
        self.remaining = sent.count

    def is_of(self, publication: Publication, number: int) -> bool:
        """Return whether this message of a channel's queue is among them."""
        source = self.source
        first = source.first
        return source.publication is publication and first <= number < first + source.count

    def pending(self, only: int | None = None) -> list[int]:
        """Return the numbers in `sent` of the unacknowledged messages, or of the `only` one.

        That is given by its identifier.
        """
        sent, inflight = self.sent, self.consumer.inflight
        found = [
            sent.first + index
            for index in range(sent.count)
            if inflight.find(sent.packet_id + index) is sent
        ]
        if only is None:
            return found
        return [each for each in found if message_id(self.source, each) == only]


class Deliveries:
    """Messages in flight, by the span that the consumer got, ordered by timeout.

    Messages that are not acknowledged within `timeout` seconds, or are returned, go to `come_back`
    with the monotonic second before which they must not be dispatched. If they have timed out and
    `stays` says that nobody else can have them, their consumer keeps them; that counts as an
    attempt if the channel `has_dead_letters`. `channel` has the journal; the `alarm` is set for
    `check_deadlines`. `late` has timed-out deliveries that still occupy their consumers' windows:
    their acknowledgement counts, too, while the message is among the `returned` ones. All levels of
    a channel share them.
    """

    __slots__ = (
        "_alarm",
        "_by_span",
        "_channel",
        "_come_back",
        "_figures",
        "_returned",
        "_stays",
        "_unnoted",
        "has_dead_letters",
        "late",
        "timeout",
    )

    def __init__(
        self,
        channel: Session,
        figures: ChannelFigures,
        alarm: Alarm,
        timeout: float,
        come_back: Callable[[Offer, float], None],
        returned: ReturnedMessages,
        stays: Callable[[Delivery], bool],
    ) -> None:
        self._channel = channel
        self._figures = figures
        self._alarm = alarm
        self.timeout = timeout
        self._come_back = come_back
        self._returned = returned
        self._stays = stays
        self.has_dead_letters = False
        self._by_span: dict[Span, Delivery] = {}
        self.late: dict[Span, Delivery] = {}  # bounded by the consumers' Receive Maximum
        self._unnoted = False  # some have an attempt to be noted

    def __iter__(self) -> Iterator[Delivery]:
        return iter(self._by_span.values())

    @property
    def messages(self) -> int:
        """How many messages consumers have."""
        return sum(each.remaining for each in self)

    def has(self, delivery: Delivery) -> bool:
        """Return whether a delivery is neither fully acknowledged nor timed out."""
        return delivery.sent in self._by_span

    def begin(
        self, source: Span, sent: Span, consumer: Session, attempts: int, now: float, noted: bool
    ) -> Delivery:
        """Note that a consumer gets messages, and which attempt it is."""
        sent.channel = self
        due = now + self.timeout
        delivery = Delivery(source, sent, consumer, attempts, now, due, noted)
        self._by_span[sent] = delivery  # the last in the order of timeouts
        if noted:
            self._note(delivery, list(range(sent.first, sent.first + sent.count)))
        elif source.row is not None:
            self._unnoted = True
        self._alarm.set(min(due, now + _NOTED_AFTER) if self._unnoted else due)
        return delivery

    def next_due(self, now: float) -> float:
        """Return the second at which `check_deadlines` has work, infinite if none is in flight."""
        if not self._by_span:
            return inf
        first: Delivery = next(iter(self._by_span.values()))
        return min(first.due, now + _NOTED_AFTER) if self._unnoted else first.due

    def finished(self, span: Span, number: int, count: int) -> None:
        """Forget messages that a consumer acknowledged."""
        delivery = self._by_span.get(span)
        if delivery is None:
            self._finished_late(span, number, count)
            return
        self._figures.acknowledge(span.publication.arrived, count)
        self._channel.forget(delivery.source, number, count)
        self._settle(delivery, count)

    def _finished_late(self, span: Span, number: int, count: int) -> None:
        """End messages that were acknowledged after their time, unless another consumer has them.

        One that waits need not be sent again. If the same consumer has it once more, that ends too.
        """
        late = self._leave_window(span, count)
        if late is None:
            return
        for each in range(number, number + count):
            source = late.source.part(each, 1)
            if self._returned.remove(source) or self._end_again(late.consumer, source):
                self._figures.acknowledge(source.publication.arrived, 1)
                self._channel.forget(source, source.first, 1)

    def _end_again(self, consumer: Session, source: Span) -> bool:
        """Forget a message that was sent to the same consumer again; return whether it was."""
        for each in self:
            if each.consumer is consumer and each.is_of(source.publication, source.first):
                self._settle(each, 1)  # a message that came back is the only one of its delivery
                return True
        return False

    def _leave_window(self, span: Span, count: int) -> Delivery | None:
        """Return the timed-out delivery that no longer occupies so much of a window, if any."""
        late = self.late.get(span)
        if late is not None:
            late.remaining -= count
            if not late.remaining:
                del self.late[span]
        return late

    def holders(self, publication: Publication, number: int) -> set[Session]:
        """Return the consumers in whose windows a message is that has timed out."""
        late = self.late.values()
        return {each.consumer for each in late if each.is_of(publication, number)}

    def return_message(self, span: Span, number: int) -> None:
        """Return a message for another consumer: this one refused it or its connection ended."""
        delivery = self._by_span.get(span)
        if delivery is None:
            self._leave_window(span, 1)
            return
        self._figures.requeued += 1
        self._requeue(delivery, number)
        self._settle(delivery, 1)

    def too_large(self, span: Span, number: int) -> None:
        """Return a message that is being sent and exceeds the Maximum Packet Size."""
        delivery = self._by_span[span]
        connection = delivery.consumer.connection
        assert connection is not None  # noqa: S101 - output is being encoded for it
        self._figures.delivered -= 1
        self._settle(delivery, 1)
        source = delivery.source.part(number, 1)
        above = connection.maximum_packet_size
        self._come_back(Offer(source, delivery.attempts - 1, delivery.consumer, above), 0.0)

    def check_deadlines(self, now: float) -> None:
        """Return what was not acknowledged in time, and note the attempts of what takes long.

        The packet identifiers stay in use until the consumer acknowledges them. What nobody else
        can have stays with its consumer, which would otherwise do it twice.
        """
        due = list(takewhile(lambda each: each.due <= now, self))
        for delivery in due:
            del self._by_span[delivery.sent]
            self.late[delivery.sent] = delivery
        for delivery, stays in [(each, self._stays(each)) for each in due]:
            again = delivery.attempts > 1 or delivery.oldest > 0
            self._figures.time_out(delivery.remaining, again=again)
            if stays:
                del self.late[delivery.sent]
                self._extend(delivery, now)
                continue
            for number in delivery.pending():
                self._requeue(delivery, number)
        if self._unnoted:
            self._note_long_ones(now)

    def _extend(self, delivery: Delivery, now: float) -> None:
        """Leave messages with their consumer for another timeout.

        That is a further attempt, unless the consumer acknowledged what it got before them: it is
        still busy with that [MQTT-4.6.0-2]. Where the last attempt would lose them it is none.
        """
        oldest, _ = next(iter(delivery.consumer.inflight.items()))
        if delivery.oldest in (0, oldest) and self.has_dead_letters:
            delivery.attempts += 1
            self._note(delivery, delivery.pending())
            delivery.noted = True
        delivery.oldest = oldest
        delivery.due = now + self.timeout
        self._by_span[delivery.sent] = delivery

    def touch(self, client_id: str, now: float, only: int | None = None) -> int:
        """Start the timeout of a consumer's messages again; return how many there are.

        `only` is the identifier of one, which came by itself or with others that are touched, too.
        """
        touched = [each for each in self._of(client_id) if each.pending(only)]
        for delivery in touched:
            delivery.due = now + self.timeout
            self._by_span[delivery.sent] = self._by_span.pop(delivery.sent)
        return sum(each.remaining for each in touched)

    def requeue(self, client_id: str, second: float = 0.0, only: int | None = None) -> int:
        """Return all messages of a consumer, or the `only` one; return how many there are.

        They are dispatched again from the monotonic `second` on.
        """
        requeued = 0
        for delivery in self._of(client_id):
            for number in delivery.pending(only):
                packet_id = delivery.sent.packet_id + number - delivery.sent.first
                delivery.consumer.inflight.remove((packet_id,), 0)
                self._requeue(delivery, number, second)
                self._settle(delivery, 1)
                requeued += 1
        self._figures.requeued += requeued
        for late in [each for each in self.late.values() if each.consumer.client_id == client_id]:
            for number in late.pending(only):
                packet_id = late.sent.packet_id + number - late.sent.first
                late.consumer.inflight.remove((packet_id,), 0)
                self._leave_window(late.sent, 1)
        return requeued

    def clear(self) -> None:
        """Forget all of them."""
        self._by_span.clear()
        self.late.clear()

    def _of(self, client_id: str) -> list[Delivery]:
        return [each for each in self if each.consumer.client_id == client_id]

    def _settle(self, delivery: Delivery, count: int) -> None:
        """Forget so many messages of a delivery."""
        delivery.remaining -= count
        if not delivery.remaining:
            del self._by_span[delivery.sent]

    def _requeue(self, delivery: Delivery, number: int, second: float = 0.0) -> None:
        span = delivery.source.part(number, 1)
        self._come_back(Offer(span, delivery.attempts, delivery.consumer), second)

    def _note_long_ones(self, now: float) -> None:
        self._unnoted = False
        for delivery in self:
            if not delivery.noted:
                self._unnoted = delivery.given > now - _NOTED_AFTER
                if self._unnoted:
                    break
                delivery.noted = True
                self._note(delivery, delivery.pending())

    def _note(self, delivery: Delivery, numbers: list[int]) -> None:
        """Store how often these messages of a delivery were dispatched."""
        journal = self._channel.journal
        for number in numbers:
            journal.attempted(delivery.source, number, delivery.attempts)

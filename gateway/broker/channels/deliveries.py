"""Messages of a channel in flight: acknowledgement, timeout and return."""

from collections.abc import Callable, Iterator
from math import inf

from gateway.broker.channels.alarm import Alarm
from gateway.broker.channels.figures import ChannelFigures
from gateway.broker.channels.waiting import Offer
from gateway.session.session import Session
from gateway.session.span import Span

NOTED_AFTER = 1.0
"""Seconds in flight after which an attempt is noted on disk: few messages take so long."""

_NOTED_AFTER = NOTED_AFTER  # compiled, a C name


class Delivery:
    """Messages that a consumer got together and has not all acknowledged.

    `source` is the span of the channel's queue, `sent` the consumer's: both begin with the same
    message. They were dispatched at the monotonic second `given` and time out at `due`. `noted` is
    True once the channel's journal knows of the attempt.
    """

    __slots__ = ("attempts", "consumer", "due", "given", "noted", "remaining", "sent", "source")

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
        self.remaining = sent.count

    def original(self, number: int) -> int:
        """Return the number in `source` of a message of `sent`."""
        return self.source.first + number - self.sent.first

    def pending(self) -> list[int]:
        """Return the numbers in `sent` of the unacknowledged messages."""
        sent, inflight = self.sent, self.consumer.inflight
        return [
            sent.first + index
            for index in range(sent.count)
            if inflight.find(sent.packet_id + index) is sent
        ]


class Deliveries:
    """Messages in flight, by the span that the consumer got, ordered by timeout.

    Messages that are not acknowledged within `timeout` seconds, or are returned, go to `come_back`
    with the monotonic second before which they must not be dispatched. `channel` has the journal;
    the `alarm` is set for `check_deadlines`. `late` has the consumers of timed-out messages that
    still occupy their windows.
    """

    __slots__ = (
        "_alarm",
        "_by_span",
        "_channel",
        "_come_back",
        "_figures",
        "_unnoted",
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
    ) -> None:
        self._channel = channel
        self._figures = figures
        self._alarm = alarm
        self.timeout = timeout
        self._come_back = come_back
        self._by_span: dict[Span, Delivery] = {}
        self.late: dict[Span, Session] = {}  # bounded by the consumers' Receive Maximum
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
        if delivery is None:  # they timed out and went to others
            self.late.pop(span, None)
            return
        self._figures.acknowledge(span.publication.arrived, count)
        self._channel.journal.done(delivery.source, delivery.original(number), count)
        self._settle(delivery, count)

    def return_message(self, span: Span, number: int) -> None:
        """Return a message for another consumer: this one refused it or its connection ended."""
        delivery = self._by_span.get(span)
        if delivery is None:
            self.late.pop(span, None)
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
        source = delivery.source.part(delivery.original(number), 1)
        above = connection.maximum_packet_size
        self._come_back(Offer(source, delivery.attempts - 1, delivery.consumer, above), 0.0)

    def check_deadlines(self, now: float) -> None:
        """Return what was not acknowledged in time, and note the attempts of what takes long.

        The packet identifiers stay in use until the consumer acknowledges them.
        """
        while self._by_span:
            delivery = next(iter(self))
            if delivery.due > now:
                break
            del self._by_span[delivery.sent]
            self.late[delivery.sent] = delivery.consumer
            for number in delivery.pending():
                self._figures.timed_out += 1
                self._requeue(delivery, number)
        if self._unnoted:
            self._note_long_ones(now)

    def touch(self, client_id: str, now: float) -> int:
        """Start the timeout of all a consumer's messages again; return how many there are."""
        touched = self._of(client_id)
        for delivery in touched:
            delivery.due = now + self.timeout
            self._by_span[delivery.sent] = self._by_span.pop(delivery.sent)
        return sum(each.remaining for each in touched)

    def requeue(self, client_id: str, second: float = 0.0) -> int:
        """Return all messages of a consumer; return how many there are.

        They are dispatched again from the monotonic `second` on.
        """
        requeued = 0
        for delivery in self._of(client_id):
            for number in delivery.pending():
                packet_id = delivery.sent.packet_id + number - delivery.sent.first
                delivery.consumer.inflight.remove((packet_id,), 0)
                self._requeue(delivery, number, second)
                self._settle(delivery, 1)
                requeued += 1
        self._figures.requeued += requeued
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
        span = delivery.source.part(delivery.original(number), 1)
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
            journal.attempted(delivery.source, delivery.original(number), delivery.attempts)

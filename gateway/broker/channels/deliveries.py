"""Messages of a channel that consumers have: how they are acknowledged, time out and come back."""

from collections.abc import Callable, Iterator
from math import inf

from gateway.broker.channels.alarm import Alarm
from gateway.broker.channels.figures import ChannelFigures
from gateway.broker.channels.waiting import Offer
from gateway.session.session import Session
from gateway.session.span import Span

NOTED_AFTER = 1.0
"""Seconds that a message is in flight before its attempt is noted on disk: few are so long."""

_NOTED_AFTER = NOTED_AFTER  # compiled, a C name


class Delivery:
    """Messages that a consumer was given at once and has not all acknowledged.

    `source` is the span of the channel's queue, `sent` the one that the consumer got: the first
    message of one is that of the other. They were given out at the monotonic second `given` and
    time out at `due`. It is `noted` once the channel's journal knows of the attempt.
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
        """Return the numbers in `sent` of the messages that were not acknowledged."""
        sent, inflight = self.sent, self.consumer.inflight
        return [
            sent.first + index
            for index in range(sent.count)
            if inflight.find(sent.packet_id + index) is sent
        ]


class Deliveries:
    """What consumers have, by the span that they got, in the order in which it times out.

    What they do not acknowledge within `timeout` seconds, or give back, goes to `come_back`, with
    the monotonic second before which it is not to be given out. `channel` has the journal, and the
    `alarm` rings when `check_deadlines` has something to do.
    `late` has the consumers of what has timed out and still takes room of their windows.
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
        self.late: dict[Span, Session] = {}  # up to what their Receive Maximum lets them have
        self._unnoted = False  # of some the attempt is to be noted

    def __iter__(self) -> Iterator[Delivery]:
        return iter(self._by_span.values())

    @property
    def messages(self) -> int:
        """How many messages consumers have."""
        return sum(each.remaining for each in self)

    def has(self, delivery: Delivery) -> bool:
        """Return whether its consumer has not acknowledged all of a delivery, and has time left."""
        return delivery.sent in self._by_span

    def begin(
        self, source: Span, sent: Span, consumer: Session, attempts: int, now: float, noted: bool
    ) -> Delivery:
        """Note that a consumer gets messages, for the so manieth time."""
        sent.channel = self
        due = now + self.timeout
        delivery = Delivery(source, sent, consumer, attempts, now, due, noted)
        self._by_span[sent] = delivery  # before it no other times out
        if noted:
            self._note(delivery, list(range(sent.first, sent.first + sent.count)))
        elif source.row is not None:
            self._unnoted = True
        self._alarm.set(min(due, now + _NOTED_AFTER) if self._unnoted else due)
        return delivery

    def next_due(self, now: float) -> float:
        """Return the second at which `check_deadlines` has work, infinite if it never has."""
        if not self._by_span:
            return inf
        first: Delivery = next(iter(self._by_span.values()))
        return min(first.due, now + _NOTED_AFTER) if self._unnoted else first.due

    def finished(self, span: Span, number: int, count: int) -> None:
        """Forget messages that a consumer acknowledged."""
        delivery = self._by_span.get(span)
        if delivery is None:  # they have timed out, and others have got them
            self.late.pop(span, None)
            return
        self._figures.acknowledge(span.publication.arrived, count)
        self._channel.journal.done(delivery.source, delivery.original(number), count)
        self._settle(delivery, count)

    def return_message(self, span: Span, number: int) -> None:
        """Give a message to another consumer: this one's connection has ended, or it refuses it."""
        delivery = self._by_span.get(span)
        if delivery is None:
            self.late.pop(span, None)
            return
        self._figures.requeued += 1
        self._requeue(delivery, number)
        self._settle(delivery, 1)

    def too_large(self, span: Span, number: int) -> None:
        """Take back a message that is being given out, whose packet its consumer cannot take."""
        delivery = self._by_span[span]
        connection = delivery.consumer.connection
        assert connection is not None  # noqa: S101 - it is being written to
        self._figures.delivered -= 1
        self._settle(delivery, 1)
        source = delivery.source.part(delivery.original(number), 1)
        above = connection.maximum_packet_size
        self._come_back(Offer(source, delivery.attempts - 1, delivery.consumer, above), 0.0)

    def check_deadlines(self, now: float) -> None:
        """Take back what was not acknowledged in time, and note the attempts of what takes long.

        A consumer's packet identifier stays in use until it acknowledges it all the same.
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
        """Give a consumer the whole time again for all that it has; return how many these are."""
        touched = self._of(client_id)
        for delivery in touched:
            delivery.due = now + self.timeout
            self._by_span[delivery.sent] = self._by_span.pop(delivery.sent)
        return sum(each.remaining for each in touched)

    def requeue(self, client_id: str, second: float = 0.0) -> int:
        """Take back all that a consumer has; return how many these are.

        They are given out again from the monotonic `second` on.
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
        """Have it noted how often these messages of a delivery were given out."""
        journal = self._channel.journal
        for number in numbers:
            journal.attempted(delivery.source, delivery.original(number), delivery.attempts)

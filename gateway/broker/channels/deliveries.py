"""Messages of a channel that consumers have."""

from collections.abc import Iterator

from gateway.session.session import Session
from gateway.session.span import Span


class Delivery:
    """Messages that a consumer was given at once and has not all acknowledged.

    `source` is the span of the channel's queue, `sent` the one that the consumer got: the first
    message of one is that of the other. They were given out at the monotonic second `given` and
    time out at `due`. It is `noted` once the channel's journal knows of the attempt.
    """

    __slots__ = ("attempts", "consumer", "due", "given", "left", "noted", "sent", "source")

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
        self.left = sent.count

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
    """What consumers have, by the span that they got, in the order in which it times out."""

    __slots__ = ("_by_span",)

    def __init__(self) -> None:
        self._by_span: dict[Span, Delivery] = {}

    def __iter__(self) -> Iterator[Delivery]:
        return iter(self._by_span.values())

    def find(self, span: Span) -> Delivery | None:
        """Return the delivery with this span, None if it is over."""
        return self._by_span.get(span)

    def add(self, delivery: Delivery) -> None:
        """Put a delivery last, before which no other times out."""
        self._by_span.pop(delivery.sent, None)
        self._by_span[delivery.sent] = delivery

    def settle(self, delivery: Delivery, count: int) -> None:
        """Forget so many of its messages."""
        delivery.left -= count
        if not delivery.left:
            del self._by_span[delivery.sent]

    def of(self, client_id: str) -> list[Delivery]:
        """Return what a consumer has."""
        return [each for each in self if each.consumer.client_id == client_id]

    def first(self) -> Delivery | None:
        """Return the one that times out next."""
        return next(iter(self), None)

    def clear(self) -> None:
        """Forget all of them."""
        self._by_span.clear()

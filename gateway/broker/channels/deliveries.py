"""Messages of a channel that a consumer has, or has given back."""

from gateway.session.session import Session
from gateway.session.span import Span


class Delivery:
    """Messages that a consumer was given at once and has not all acknowledged.

    `source` is the span of the channel's queue, `sent` the one that the consumer got: the first
    message of one is that of the other. They time out at the monotonic second `due`.
    """

    __slots__ = ("attempts", "consumer", "due", "left", "sent", "source")

    def __init__(
        self, source: Span, sent: Span, consumer: Session, attempts: int, due: float
    ) -> None:
        self.source = source
        self.sent = sent
        self.consumer = consumer
        self.attempts = attempts
        self.due = due
        self.left = sent.count

    def original(self, number: int) -> int:
        """Return the number in `source` of a message of `sent`."""
        return self.source.first + number - self.sent.first


class Returned:
    """A message that goes to another consumer next: it was given out so many times."""

    __slots__ = ("attempts", "avoid", "span")

    def __init__(self, span: Span, attempts: int, avoid: Session | None) -> None:
        self.span = span
        self.attempts = attempts
        self.avoid = avoid

"""What is next for the consumers of a channel."""

from gateway.session.session import Session
from gateway.session.span import Span


class Offer:
    """Messages that were given out so many times, and are not for `avoid` if another has room.

    They are too large for consumers whose Maximum Packet Size is `above` bytes or less.
    """

    __slots__ = ("above", "attempts", "avoid", "span")

    def __init__(self, span: Span, attempts: int, avoid: Session | None, above: int = 0) -> None:
        self.span = span
        self.attempts = attempts
        self.avoid = avoid
        self.above = above

"""What is known of the messages that an earlier run of the gateway had given out."""

from gateway.session.kept import KeptSession
from gateway.session.span import Span


class EarlierRun:
    """How often it gave out messages of a channel, as far as that was noted on disk.

    Its last second was not: each message that it left may have been given out once more.
    """

    __slots__ = ("_attempts", "_last", "counted")

    def __init__(self, kept: KeptSession | None = None) -> None:
        spans = [] if kept is None else kept.spans
        self._attempts = {} if kept is None else dict(kept.attempts)  # by sequence number
        self.counted = len(self._attempts) > 0  # some of its messages have attempts
        self._last = spans[-1].span.last if spans else 0  # its last message that was in memory

    def attempts(self, span: Span) -> int:
        """Return how often the first message of a span was given out."""
        return self._attempts.get(span.sequence, 0) if self.counted else 0

    def left(self, span: Span) -> bool:
        """Return whether these messages may have been given out without a note of it."""
        return 0 < span.sequence <= self._last

"""Messages that the fleet's broker refused temporarily: when and how long they are retried."""

import heapq
from collections.abc import Container

from gateway.mqtt.reason_codes import ReasonCode

RETRY_FIRST, RETRY_LONGEST = 1.0, 300.0
"""Seconds until a message is tried again, doubled each time."""

MAXIMUM_REFUSED = 20_000
"""Messages that wait for this; above it no others are sent until some have ended."""

SEPARATE_FROM = 2
"""Refusals after which a message is not sent in a batch, where another may be the cause."""


class Refusal:
    """One message: since when and how often it was refused, when it is due, and the code."""

    __slots__ = ("code", "due", "since", "times")

    def __init__(self, since: float) -> None:
        self.since = since
        self.times = 0
        self.due = since
        self.code = 0


class Refusals:
    """Refused messages by the id of their row, across connections; rows stay in the outbox.

    One that is refused for more than `retry_seconds` seconds is rejected.
    """

    def __init__(self, retry_seconds: float) -> None:
        self.retry_seconds = retry_seconds
        self.by_id: dict[int, Refusal] = {}
        """All of them, checked for each message: most of the time there are none."""
        self._queue: list[tuple[float, int]] = []

    @property
    def full(self) -> bool:
        """Whether no further message may be sent, since it might be refused, too."""
        return len(self.by_id) >= MAXIMUM_REFUSED

    @property
    def next_due(self) -> float | None:
        """When the next is due, in monotonic seconds, None if none is known."""
        return self._queue[0][0] if self._queue else None

    def begin(self, others: Container[int] = ()) -> None:
        """Begin a connection: messages too large for the last one are due.

        `others` precede them.
        """
        for refusal in self.by_id.values():
            if refusal.code == ReasonCode.PACKET_TOO_LARGE:
                refusal.due = 0.0
        self._queue = [
            (refusal.due, each) for each, refusal in self.by_id.items() if each not in others
        ]
        heapq.heapify(self._queue)

    def add(self, identifier: int, code: int, now: float) -> float | None:
        """Note a refusal; return when the message is due again, None if it is to be rejected."""
        refusal = self.by_id.setdefault(identifier, Refusal(now))
        if now - refusal.since >= self.retry_seconds:
            self.discard(identifier)
            return None
        delay = RETRY_FIRST * 2.0 ** min(refusal.times, 30)
        refusal.times += 1
        refusal.code = code
        until = refusal.since + self.retry_seconds
        refusal.due = min(now + min(delay, RETRY_LONGEST), until)
        heapq.heappush(self._queue, (refusal.due, identifier))
        return refusal.due

    def is_first(self, identifier: int) -> bool:
        """Return whether the message was refused once."""
        refusal = self.by_id.get(identifier)
        return refusal is not None and refusal.times == 1

    def is_separate(self, identifier: int) -> bool:
        """Return whether the message must not be in a batch."""
        refusal = self.by_id.get(identifier)
        return refusal is not None and refusal.times >= SEPARATE_FROM

    def is_due(self, now: float) -> bool:
        """Return whether `next` has a message."""
        return bool(self._queue) and self._queue[0][0] <= now

    def next(self) -> int:
        """Remove and return the id of the message that is due first."""
        return heapq.heappop(self._queue)[1]

    def postpone(self, identifier: int, due: float) -> None:
        """Have `next` return a message again, not before `due`."""
        heapq.heappush(self._queue, (due, identifier))

    def discard(self, identifier: int) -> None:
        """Forget a message that has ended."""
        self.by_id.pop(identifier, None)

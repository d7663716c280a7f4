"""Removes the subscriptions of ended sessions in pieces."""

import math
from collections import deque
from typing import Final

from gateway.broker.deadlines import Deadlines
from gateway.broker.instant import Instant
from gateway.routing.router import Router
from gateway.session.session import Session

PIECE = 100
"""Subscriptions that are removed in one turn, of all ended sessions together: some 3 ms."""

_KEY: Final = "ended subscriptions"


class EndedSubscriptions:
    """Removes the subscriptions of ended sessions from the router, the first hundred at once.

    A client may leave 200,000 of them. Until they are removed the session receives nothing for them
    (`Session.ended`), and they count towards the limit of subscriptions.
    """

    __slots__ = ("_deadlines", "_numbers", "_remaining", "_router", "_turn")

    def __init__(self, router: Router, deadlines: Deadlines) -> None:
        self._router = router
        self._deadlines = deadlines
        self._numbers: deque[list[int]] = deque()  # their numbers, one list for each session
        self._turn = -math.inf  # monotonic second
        self._remaining = 0  # subscriptions that may still be removed in this turn

    def add(self, session: Session, instant: Instant) -> None:
        """Remove the subscriptions of an ended session."""
        numbers = self._router.numbers(session)
        if numbers:
            self._numbers.append(numbers)
            self._go_on(_KEY, instant)

    def _go_on(self, _: str, instant: Instant) -> None:
        if instant.monotonic != self._turn:
            self._turn, self._remaining = instant.monotonic, PIECE
        discard = self._router.discard
        while self._numbers and self._remaining:
            numbers = self._numbers[0]
            for _place in range(min(self._remaining, len(numbers))):
                discard(numbers.pop())  # from the last, so that the columns' ends become free first
                self._remaining -= 1
            if not numbers:
                self._numbers.popleft()
        if self._numbers:
            self._deadlines.set_next(_KEY, instant, self._go_on)

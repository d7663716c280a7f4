"""The subscriptions of sessions that have ended, given up a piece at a time."""

import math
from collections import deque
from typing import Final

from gateway.broker.deadlines import Deadlines
from gateway.broker.instant import Instant
from gateway.routing.router import Router
from gateway.session.session import Session

PIECE = 100
"""Subscriptions that are given up in one turn, of all ended sessions together: some 3 ms."""

_KEY: Final = "ended subscriptions"


class EndedSubscriptions:
    """Takes the subscriptions of ended sessions from the router, the first hundred at once.

    A client may leave 200,000 of them. Until they are gone the session gets nothing for them
    (`Session.ended`). They are counted as subscriptions while they are there, and bounded as such.
    """

    __slots__ = ("_deadlines", "_numbers", "_remaining", "_router", "_turn")

    def __init__(self, router: Router, deadlines: Deadlines) -> None:
        self._router = router
        self._deadlines = deadlines
        self._numbers: deque[list[int]] = deque()  # their numbers, of one session each
        self._turn = -math.inf  # monotonic second
        self._remaining = 0  # subscriptions that may still be given up in this turn

    def add(self, session: Session, instant: Instant) -> None:
        """Give up the subscriptions of a session that has ended."""
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
                discard(numbers.pop())  # from the last: the columns' ends are free first
                self._remaining -= 1
            if not numbers:
                self._numbers.popleft()
        if self._numbers:
            self._deadlines.set_next(_KEY, instant, self._go_on)

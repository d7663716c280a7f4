"""What of a queue is on disk alone."""

from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gateway.session.delivery import Delivery
    from gateway.session.waiting_run import Waiting

NOTHING_BETWEEN: Final[deque[tuple[int, "Delivery"]]] = deque(maxlen=0)
"""Stands for the deque that is made when it is needed: 760 bytes, even while it is empty."""


class Rest:
    """A run of places that are on disk and not in memory: above `after`, up to `up_to`.

    What cannot be written stays in memory `between` them, each with the place that it stands
    behind; its memory is counted by the queue.
    """

    __slots__ = ("after", "asked_up_to", "between", "bytes", "loading", "messages", "up_to")

    def __init__(self, after: int = 0, up_to: int = 0, messages: int = 0, size: int = 0) -> None:
        self.after = after
        self.up_to = up_to
        self.messages = messages
        self.bytes = size
        self.between = NOTHING_BETWEEN
        self.loading = False
        self.asked_up_to = 0

    def push(self, waiting: "Waiting") -> None:
        """Add what is on disk; its places are above all here."""
        if not self.messages:
            self.after = waiting.place - 1
        self.up_to = waiting.place + waiting.count - 1
        self.messages += waiting.count
        self.bytes += waiting.kept

    def keep_between(self, delivery: "Delivery") -> None:
        """Add one that stays in memory; its place is above all here."""
        if self.between is NOTHING_BETWEEN:
            self.between = deque()
        self.between.append((self.up_to, delivery))

    def begin_page(self) -> tuple[int, int]:
        """Note that a part of it is being read; return behind which place and up to which."""
        self.loading = True
        self.asked_up_to = self.up_to
        return self.after, self.up_to

    def loaded(self, waiting: "Waiting") -> None:
        """Note that everything up to this is in memory now."""
        self.after = max(self.after, waiting.last)
        self.messages -= waiting.count
        self.bytes -= waiting.kept

    def holds(self, place: int) -> bool:
        """Tell whether the place is on disk alone, if there is such a place."""
        return self.after < place <= self.up_to


NO_REST: Final = Rest()
"""The rest of every queue that has none: nothing of it is counted or loaded."""

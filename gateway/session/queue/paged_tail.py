"""What of a queue is on disk alone."""

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gateway.session.span import Span

NOTHING_BETWEEN: Final[deque[tuple[int, "Span"]]] = deque(maxlen=0)
"""Stands for the deque that is made when it is needed: 760 bytes, even while it is empty."""


class PagedTail:
    """The messages that are on disk and not in memory: sequence numbers above `after`, to `up_to`.

    What cannot be written stays in memory `between` them, each span with the sequence number that
    it stands behind; its memory is counted by the queue.
    """

    __slots__ = ("after", "between", "bytes", "loading", "messages", "requested_up_to", "up_to")

    def __init__(self, after: int = 0, up_to: int = 0, messages: int = 0, size: int = 0) -> None:
        self.after = after
        self.up_to = up_to
        self.messages = messages
        self.bytes = size
        self.between = NOTHING_BETWEEN
        self.loading = False
        self.requested_up_to = 0

    def push(self, span: "Span") -> None:
        """Add what is on disk; its sequence numbers are above all here."""
        before = span.sequence - 1
        if not self.messages:
            self.after = before
        self.up_to = before + span.count
        self.messages += span.count
        self.bytes += span.disk_bytes

    def add_between(self, span: "Span") -> None:
        """Add one that stays in memory; what comes now stands behind all here."""
        if self.between is NOTHING_BETWEEN:
            self.between = deque()
        self.between.append((self.up_to, span))

    def begin_page(self) -> tuple[int, int]:
        """Note that a part of it is being read; return above which sequence number, up to which."""
        self.loading = True
        self.requested_up_to = self.up_to
        return self.after, self.up_to

    def loaded(self, spans: Sequence["Span"]) -> None:
        """Note that everything up to the last of these is in memory now."""
        if spans:
            self.after = spans[-1].last
        self.messages -= sum([span.count for span in spans])
        self.bytes -= sum([span.disk_bytes for span in spans])

    def holds(self, sequence: int) -> bool:
        """Tell whether the message with this sequence number is on disk alone, if there is one."""
        return self.after < sequence <= self.up_to


NO_TAIL: Final = PagedTail()
"""The paged tail of every queue that has none: nothing of it is counted or loaded."""

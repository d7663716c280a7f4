"""The part of a queue that is only on disk."""

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gateway.session.span import Span

NOTHING_BETWEEN: Final[deque[tuple[int, "Span"]]] = deque(maxlen=0)
"""Shared empty deque: a real one takes 760 bytes."""


class PagedTail:
    """Messages on disk and not in memory: sequence numbers above `after`, up to `up_to`.

    What cannot be stored stays in memory `between` them, each span with the sequence number that
    precedes it; the queue counts its memory.
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
        """Add a span on disk; its sequence numbers are above all others."""
        before = span.sequence - 1
        if not self.messages:
            self.after = before
        self.up_to = before + span.count
        self.messages += span.count
        self.bytes += span.disk_bytes

    def add_between(self, span: "Span") -> None:
        """Add a span that stays in memory, after all others."""
        if self.between is NOTHING_BETWEEN:
            self.between = deque()
        self.between.append((self.up_to, span))

    def begin_page(self) -> tuple[int, int]:
        """Note that a page is being read; return its first number, exclusive, and its last."""
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
        """Return whether the message with this sequence number is only on disk, if it exists."""
        return self.after < sequence <= self.up_to


NO_TAIL: Final = PagedTail()
"""The paged tail of every queue without one: nothing of it is counted or loaded."""

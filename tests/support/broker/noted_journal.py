"""A journal that notes what it is told, and has as much on disk as it is given."""

from collections.abc import Sequence

from gateway.session.journal import NoJournal, OnPage
from gateway.session.span import Span

Note = tuple[str, list[bytes]]
"""What was done, with which payloads."""


class NotedJournal(NoJournal):
    """Every call that makes a commit due returns 7; pages that it has not got never come."""

    __slots__ = ("asked", "deferred", "notes", "pages")

    def __init__(self, pages: Sequence[tuple[list[Span], bool]] = ()) -> None:
        self.notes: list[Note] = []
        self.deferred: list[bool] = []
        self.pages = [*pages]
        self.asked: list[tuple[int, int]] = []

    def _note(self, what: str, span: Span, first: int, count: int) -> None:
        packets = span.publication.packets
        self.notes.append((what, [packets.one(n) for n in range(first, first + count)]))

    def enqueue(self, span: Span, deferred: bool) -> None:
        self.deferred.append(deferred)
        self._note("enqueue", span, span.first, span.count)

    def done(self, span: Span, first: int, count: int) -> None:
        self._note("done", span, first, count)

    def sent(self, span: Span) -> int:
        self._note("sent", span, span.first, span.count)
        return 7

    def released(self, span: Span) -> int:
        self._note("released", span, span.first, span.count)
        return 7

    def resent(self, span: Span) -> int:
        self._note("resent", span, span.first, span.count)
        return 7

    def disconnect(self, wall: int) -> None:
        self.notes.append((f"leave {wall}", []))

    def load(self, after: int, up_to: int, take: OnPage) -> None:
        """Give the next page, which is there at once."""
        self.asked.append((after, up_to))
        if self.pages:
            take(*self.pages.pop(0), 0.0)

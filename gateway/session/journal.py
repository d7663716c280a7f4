"""What a session stores of its changes, so that it can be restored after a crash."""

from collections.abc import Callable, Sequence
from typing import Protocol

from gateway.access.listeners import UNKNOWN, Origin
from gateway.session.restored import StoredSubscription
from gateway.session.span import Span

OnPage = Callable[[list[Span], bool, float], None]
"""Called with the spans read, whether these are all requested ones, and the monotonic second."""


class PagedQueue(Protocol):
    """The queue whose paged tail a journal reads."""

    def forget_written(self, batch: int) -> bool:
        """Free what this batch wrote to disk; return False if more will follow."""
        ...

    def remove_paged(self, sequence: int, size: int, messages: int) -> bool:
        """Drop messages of one row that is only on disk; return whether it existed."""
        ...


class Journal(Protocol):
    """Records a persistent session's undelivered, sent and accepted messages and subscriptions.

    Methods that return a commit number make their changes due at once; a packet that must not be
    sent before they are on disk waits for that number. Other changes are due at once if the client
    is answered because of them (`enqueue`, `store`, `subscribe`, `note_incoming`). The rest is due
    within a second: losing it in a crash only repeats something that may be repeated.
    """

    def store(self, expiry_interval: int, username: str | None, home: Origin = UNKNOWN) -> None:
        """Store that the session has a connection, its owner, and its expiry."""
        ...

    def disconnect(self, wall: int) -> None:
        """Store that the session has no connection since `wall`, in milliseconds since 1970."""
        ...

    def enqueue(self, span: Span, deferred: bool) -> None:
        """Store the messages of a span, a single one if its QoS is 2, until `done`.

        A `deferred` write is skipped if the receiver acknowledges them before its batch closes;
        until then the publication's barrier, if there is one, waits for this receiver, too.
        Messages that are only in memory get no row.
        """
        ...

    def done(self, span: Span, first: int, count: int) -> None:
        """Forget messages, from number `first` of the publication on.

        They were acknowledged, have expired, or cannot be sent.
        """
        ...

    def sent(self, span: Span) -> int:
        """Store the packet identifiers of the span; PUBLISH of QoS 2 waits for it.

        Returns 0 for QoS 1.
        """
        ...

    def released(self, span: Span) -> int:
        """Store that PUBREC has arrived for a QoS 2 message; its PUBREL waits for the commit."""
        ...

    def resent(self, span: Span) -> int:
        """Return the commit that a QoS 2 message waits for when it is resent."""
        ...

    def attempted(self, span: Span, number: int, attempts: int) -> None:
        """Store how often a channel has dispatched a message, until it is `done`."""
        ...

    def note_incoming(self, packet_ids: Sequence[int], *, released: bool) -> None:
        """Store packet identifiers of the client's QoS 2 messages, or that PUBREL has arrived."""
        ...

    def number_from(self, base: int) -> None:
        """Give messages sequence numbers above this one from now on."""
        ...

    def serve(self, queue: PagedQueue) -> None:
        """Report to this queue which messages are on disk, so that it can free their memory."""
        ...

    def load(self, after: int, up_to: int, on_page: OnPage) -> None:
        """Read the messages above sequence number `after`, up to `up_to`; `on_page` gets a page."""
        ...

    def cut(self, size: int, dropped: Callable[[int], None], *, newest: bool) -> None:
        """Delete this many bytes that are only on disk, from one end, step by step.

        `dropped` is called with the number of messages of each step. Only one cut runs at a time.
        """
        ...

    def subscribe(self, topic_filter: str, subscription: StoredSubscription | None) -> None:
        """Store the present subscription to a topic filter, None if it was removed."""
        ...

    def close(self, undelivered: Sequence[Span]) -> None:
        """Delete the session, which still had these undelivered messages and those only on disk.

        Nothing is stored afterwards. Messages that are only on disk are offered to other members of
        shared subscriptions (`broker.store.Store.on_undelivered`).
        """
        ...


class NoJournal:
    """The journal of a session that ends with its connection, or with the process."""

    __slots__ = ()

    def store(self, expiry_interval: int, username: str | None, home: Origin = UNKNOWN) -> None:
        """Do nothing."""

    def disconnect(self, wall: int) -> None:
        """Do nothing."""

    def enqueue(self, span: Span, deferred: bool) -> None:
        """Do nothing."""

    def done(self, span: Span, first: int, count: int) -> None:
        """Do nothing."""

    def sent(self, span: Span) -> int:  # noqa: ARG002 - keeps the name
        """Return 0."""
        return 0

    def released(self, span: Span) -> int:  # noqa: ARG002 - keeps the name
        """Return 0."""
        return 0

    def resent(self, span: Span) -> int:  # noqa: ARG002 - keeps the name
        """Return 0."""
        return 0

    def attempted(self, span: Span, number: int, attempts: int) -> None:
        """Do nothing."""

    def note_incoming(self, packet_ids: Sequence[int], *, released: bool) -> None:
        """Do nothing."""

    def number_from(self, base: int) -> None:
        """Do nothing."""

    def serve(self, queue: PagedQueue) -> None:
        """Do nothing."""

    def load(self, after: int, up_to: int, on_page: OnPage) -> None:
        """Do nothing: nothing is on disk."""

    def cut(self, size: int, dropped: Callable[[int], None], *, newest: bool) -> None:
        """Do nothing: nothing is on disk."""

    def subscribe(self, topic_filter: str, subscription: StoredSubscription | None) -> None:
        """Do nothing."""

    def close(self, undelivered: Sequence[Span]) -> None:
        """Do nothing."""


NO_JOURNAL = NoJournal()
"""Shared by all sessions that need none."""

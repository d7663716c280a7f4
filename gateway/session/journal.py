"""What a session stores of its changes, so that it can be restored after a crash."""

from collections.abc import Callable, Sequence
from typing import Protocol

from gateway.access.listeners import UNKNOWN, Origin
from gateway.session.restored import StoredSubscription
from gateway.session.span import Span

Take = Callable[[list[Span], bool, float], None]
"""Gets what was read, whether that is everything requested, and the monotonic second."""


class PagedQueue(Protocol):
    """The queue whose paged tail a journal reads."""

    def forget_written(self, batch: int) -> bool:
        """Free what this batch wrote to disk; return False if more will follow."""
        ...

    def remove_paged(self, sequence: int, size: int, messages: int) -> bool:
        """Give up so many messages of one row, on disk alone; return whether they were."""
        ...


class Journal(Protocol):
    """Takes down what one persistent session has to deliver, has sent, accepted and subscribed to.

    Those that return a commit number make what they took down due at once; what must not leave
    before it is on disk waits for that number. The others are due at once where the session's
    client is answered because of them (`enqueue`, `keep`, `subscribe`, `note_incoming`), and within
    a second where losing them only makes something come twice that may.
    """

    def store(self, expiry_interval: int, username: str | None, home: Origin = UNKNOWN) -> None:
        """Note that the session has a connection, whose it is, and how long it stays."""
        ...

    def disconnect(self, wall: int) -> None:
        """Note that the session has no connection since `wall`, in milliseconds since 1970."""
        ...

    def enqueue(self, span: Span, deferred: bool) -> None:
        """Keep the messages of a span, of one if its QoS is 2, until `done`.

        A write that is `deferred` is not made if the receiver acknowledges them before its batch
        closes; the publication's barrier, if there is one, has one receiver more until then.
        Messages that are kept in memory alone get no row.
        """
        ...

    def done(self, span: Span, first: int, count: int) -> None:
        """Forget messages, from number `first` of the publication on.

        They were acknowledged, have expired, or cannot be sent.
        """
        ...

    def sent(self, span: Span) -> int:
        """Note the packet identifiers that the span was sent with; PUBLISH of QoS 2 waits for it.

        Returns 0 for QoS 1.
        """
        ...

    def released(self, span: Span) -> int:
        """Note that PUBREC has come for a QoS 2 message; its PUBREL waits for the commit."""
        ...

    def resent(self, span: Span) -> int:
        """Return the commit that a QoS 2 message waits for when it is sent once more."""
        ...

    def attempted(self, span: Span, number: int, attempts: int) -> None:
        """Note how often a channel has given out a message, until it is `done`."""
        ...

    def note_incoming(self, packet_ids: Sequence[int], *, released: bool) -> None:
        """Note packet identifiers of QoS 2 messages of the client's, or that PUBREL has come."""
        ...

    def serve(self, queue: PagedQueue) -> None:
        """Tell this queue what is on disk, so that it need not hold it in memory."""
        ...

    def load(self, after: int, up_to: int, take: Take) -> None:
        """Read messages with sequence numbers above `after`, up to `up_to`; `take` gets a page."""
        ...

    def cut(self, size: int, dropped: Callable[[int], None], *, newest: bool) -> None:
        """Forget so many bytes of what is on disk alone, from one end of it, one step at a time.

        `dropped` gets the number of messages of each step. Nothing begins while a cut goes on.
        """
        ...

    def subscribe(self, topic_filter: str, subscription: StoredSubscription | None) -> None:
        """Note what the subscription to a topic filter is now, None where there is none."""
        ...

    def close(self, undelivered: Sequence[Span]) -> None:
        """Forget the session, which had still to deliver these and what is on disk alone.

        Nothing is noted afterwards. What is on disk alone is offered to other members of shared
        subscriptions (`broker.store.Store.on_left_over`).
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

    def serve(self, queue: PagedQueue) -> None:
        """Do nothing."""

    def load(self, after: int, up_to: int, take: Take) -> None:
        """Do nothing: nothing is on disk."""

    def cut(self, size: int, dropped: Callable[[int], None], *, newest: bool) -> None:
        """Do nothing: nothing is on disk."""

    def subscribe(self, topic_filter: str, subscription: StoredSubscription | None) -> None:
        """Do nothing."""

    def close(self, undelivered: Sequence[Span]) -> None:
        """Do nothing."""


NO_JOURNAL = NoJournal()
"""Shared by all sessions that need none."""

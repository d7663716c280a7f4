"""One subscription whose retained messages are on their way."""

from dataclasses import replace

from gateway.routing.retained.log import Cursor
from gateway.routing.subscriptions.subscription import Subscription
from gateway.session.kept import KeptSubscription
from gateway.session.session import Session

SINGLE = 4
"""As how many of them one counts that is not written together with others, or is filtered."""

MAXIMUM_UNSENT = 64 * 1024
"""Bytes that wait for a client to read them from which on its replays wait, too."""

MAXIMUM_QUEUED = 1_000
"""Messages that wait for a client, of whatever kind, from which on its replays wait, too."""


class Replay:
    """What is known of it; how far it has come, `cursor` says."""

    __slots__ = ("cursor", "kept", "noted", "scans", "session", "subscription")

    def __init__(
        self, session: Session, subscription: Subscription, kept: KeptSubscription, cursor: Cursor
    ) -> None:
        self.session = session
        self.subscription = subscription
        self.kept = replace(kept, awaits_retained=False)  # as it is when all is done
        self.cursor = cursor
        self.scans = False  # the cursor moves; otherwise it is all done in one turn
        self.noted = kept.awaits_retained  # the session's journal knows of it

    @property
    def survives(self) -> bool:
        """Whether the session is owed these messages also without a connection."""
        return self.subscription.qos > 0 and self.session.persistent

    @property
    def cost(self) -> int:
        """As how many messages each of its messages counts."""
        subscription = self.subscription
        return SINGLE if subscription.qos or subscription.where is not None else 1

    def has_room(self) -> bool:
        """Return whether the session takes messages now.

        What it is owed also without a connection goes to its queue in any case, and so to disk.
        """
        session = self.session
        connection = session.connection
        return self.survives or (
            connection is not None
            and connection.output.size < MAXIMUM_UNSENT
            and session.queue.messages - session.queue.held_back < MAXIMUM_QUEUED
        )

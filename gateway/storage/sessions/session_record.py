"""What has changed of a persistent session, gathered until it is written."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from gateway.access.origin import UNKNOWN, Origin
from gateway.session.kept import KeptSubscription
from gateway.storage.sessions.session_changes import Changes

if TYPE_CHECKING:
    from gateway.storage.sessions.session_journal import SessionJournal
    from gateway.storage.sessions.session_store import SessionStore


class SessionRecord:
    """Gathers the changes of a session, and notes those of all but what it is owed.

    That is its row, whose number is `number` and which the store writes as it is then, its
    subscriptions, and the packet identifiers it has taken. Their commit may be put off by `within`
    seconds.
    """

    __slots__ = (
        "_changes",
        "_store",
        "_within",
        "client_id",
        "expiry_interval",
        "home",
        "left_at",
        "number",
        "username",
    )

    def __init__(
        self, store: "SessionStore", number: int, client_id: str, within: float = 0.0
    ) -> None:
        self.number = number
        self.client_id = client_id
        self.expiry_interval = 0
        self.username: str | None = None
        self.home = UNKNOWN
        self.left_at: int | None = None
        self._store = store
        self._within = within
        self._changes: Changes | None = None

    @property
    def changes(self) -> Changes | None:
        """What is to be written of it; None if nothing is."""
        return self._changes

    def take_changes(self, messages: set[int]) -> Changes:
        """Return what is to be written now, and begin anew.

        A deferred write is made with the batch after this one, but for that of `messages`, which
        are written now for others, or for their order: they are promised as a whole.
        """
        changes, self._changes = self._changes or Changes(), None
        deferred, changes.deferred = changes.deferred, {}
        for last, row in deferred.items():
            now = row.publication.row in messages
            (changes.enqueued if now else self._begun().enqueued)[last] = row
        return changes

    def keep(self, expiry_interval: int, username: str | None, home: Origin = UNKNOWN) -> None:
        """Write the session's row, unless it says the same already."""
        known = (self.expiry_interval, self.username, self.home, self.left_at)
        if known != (expiry_interval, username, home, None):
            self.expiry_interval, self.left_at = expiry_interval, None
            self.username, self.home = username, home
            self._store.row_changed(cast("SessionJournal", self))
            self._store.pending.changed(self._within)

    def leave(self, wall: int) -> None:
        """Write since when the session has no connection."""
        self.left_at = wall
        self._store.row_changed(cast("SessionJournal", self))
        self._store.pending.put_off()
        changes = self._changes
        if changes is None:
            return
        changes.enqueued |= changes.deferred  # nobody is there any more who could make it needless
        changes.deferred = {}
        if changes.enqueued:
            self._store.pending.commit_number()

    def keep_incoming(self, packet_ids: Sequence[int]) -> None:
        """Write the identifiers."""
        self._begun().incoming.update(dict.fromkeys(packet_ids, True))
        self._store.pending.changed(self._within)

    def forget_incoming(self, packet_ids: Sequence[int]) -> None:
        """Delete the identifiers."""
        self._begun().incoming.update(dict.fromkeys(packet_ids, False))
        self._store.pending.changed(self._within)

    def subscribe(self, subscription: KeptSubscription) -> None:
        """Write the subscription."""
        self._begun().subscriptions[subscription.topic_filter] = subscription
        self._store.pending.changed(self._within)

    def unsubscribe(self, topic_filter: str) -> None:
        """Delete the subscription."""
        self._begun().subscriptions[topic_filter] = None
        self._store.pending.changed(self._within)

    def _begun(self) -> Changes:
        if self._changes is None:
            self._changes = Changes()
            self._store.changed(cast("SessionJournal", self))  # the part of it that this is
        return self._changes

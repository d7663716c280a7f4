"""Everything that the broker stores, as one store."""

from collections.abc import Iterable

from gateway.access.listeners import Origin
from gateway.access.topics import DELAY
from gateway.mqtt.packets import Will
from gateway.mqtt.publication import Publication
from gateway.storage.engine.pending_batch import PendingBatch
from gateway.storage.sessions.pager import OnUndelivered
from gateway.storage.sessions.retained_store import RetainedStore
from gateway.storage.sessions.session_journal import SessionJournal
from gateway.storage.sessions.session_store import SessionStore
from gateway.storage.sessions.will_store import WillStore

_SHIFTED = "time = max(time, min(time + ?, ?)) WHERE message_expiry NOT NULL"
_IS_DELAYED = f"substr(topic, 1, {len(DELAY)}) = '{DELAY}'"
_EXPIRES = (
    "UPDATE delivery SET expires = expires + coalesce((SELECT max(0, min(?, ? - time))"
    " FROM message WHERE id = delivery.message), 0) WHERE expires NOT NULL"
)
FORWARD = (
    "UPDATE session SET left_at = max(left_at, min(left_at + ?, ?)) WHERE left_at NOT NULL",
    "UPDATE will SET due = max(due, min(due + ?, ? + 1000 * delay)) WHERE due NOT NULL",
    _EXPIRES,  # before the message itself
    f"UPDATE message SET {_SHIFTED} OR {_IS_DELAYED}",  # noqa: S608 - no input in it
    f"UPDATE retained SET {_SHIFTED}",  # noqa: S608 - no input in it
)
"""Moves the times that expiry counts from, or when something is due, by this many milliseconds, but
not beyond now (ms since 1970); a time without expiry is unchanged."""


class BrokerStore:
    """Implements `broker.store.Store`.

    Register `gather` in the writer's `before_batch`, `committed` in its `on_committed`.
    """

    __slots__ = (
        "_forward",
        "_forward_batch",
        "_retained",
        "_sessions",
        "_wills",
        "pending",
    )

    durable = True

    def __init__(
        self,
        pending: PendingBatch,
        sessions: SessionStore,
        retained: RetainedStore,
        wills: WillStore,
    ) -> None:
        self.pending = pending
        self._sessions = sessions
        self._retained = retained
        self._wills = wills
        self._forward = 0  # milliseconds that times on disk may still lack
        self._forward_batch = 0  # the last batch that adds some

    @property
    def deferred_commit(self) -> int:
        """The batch of the last deferred write; 0 while answers wait for none."""
        return self.pending.deferred_commit if self.pending.writer.durable else 0

    def accepts(self, size: int) -> bool:
        """Return whether rows with so many bytes can be stored durably."""
        return self.pending.writer.accepts(size)

    @property
    def elided_rows(self) -> int:
        """How many rows were never written because every receiver had acknowledged before."""
        return self.pending.writer.elided_rows

    @property
    def on_undelivered(self) -> OnUndelivered:
        """Called with the spans that an ended session left on disk."""
        return self._sessions.pager.on_undelivered

    @on_undelivered.setter
    def on_undelivered(self, call: OnUndelivered) -> None:
        self._sessions.pager.on_undelivered = call

    @property
    def lag(self) -> int:
        """Milliseconds by which the times on disk may still be too low after a step."""
        return self._forward

    def sweep(self) -> None:
        """Delete what has expired on disk, but not while times there are wrong."""
        if not self._forward:
            self._sessions.pager.sweep()

    def open(self, client_id: str, commit_within: float) -> SessionJournal:
        """Return the journal of a new persistent session, which writes within these seconds."""
        return self._sessions.open(client_id, commit_within)

    def store_retained(self, publication: Publication) -> None:
        """Store the message in place of its topic's last one; an empty one deletes that."""
        self._retained.store(publication)

    def forget_retained(self, topics: Iterable[str]) -> None:
        """Delete retained messages that have expired."""
        self._retained.forget(topics)

    def store_will(self, client_id: str, username: str | None, origin: Origin, will: Will) -> None:
        """Store the will of a client with this origin, in place of its last one."""
        self._wills.store(client_id, username, origin, will)

    def postpone_will(self, client_id: str, due: int) -> None:
        """Store when the will is to be published: wall time, milliseconds since 1970."""
        self._wills.postpone(client_id, due)

    def drop_will(self, client_id: str) -> None:
        """Delete the client's will, if it has one."""
        self._wills.drop(client_id)

    def clock_set_forward(self, milliseconds: int, now: int) -> None:
        """Add this many milliseconds to all times that expiry counts from, but none beyond `now`.

        That begins at once: a power cut may follow. Pending rows have earlier times, too, and are
        written first; a second pass is for rows of the next batch.
        """
        self.add_rows()
        self.add_rows()
        writer = self.pending.writer
        for statement in FORWARD:
            writer.add(statement, (milliseconds, now))
        self._forward += milliseconds
        self._forward_batch = writer.batch
        writer.schedule_commit(0.0)

    def committed(self, batch: int) -> None:
        """Note that a batch is on disk."""
        if self._forward and batch >= self._forward_batch:
            self._forward = 0
        self.pending.committed(batch)
        self._sessions.committed(batch)

    def add_rows(self) -> None:
        """Give the writer the rows of all changes; it is about to close a batch."""
        self._sessions.add_rows()
        if self._retained.changed or self._retained.later:
            self._retained.add_rows()
        if self._wills.changed:
            self._wills.add_rows()

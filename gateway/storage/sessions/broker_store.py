"""Everything that the broker has kept for it, as one store."""

from collections.abc import Iterable

from gateway.mqtt.packets import Will
from gateway.mqtt.publication import Publication
from gateway.storage.engine.gathering import Gathering
from gateway.storage.sessions.pager import LeftOver
from gateway.storage.sessions.retained_store import RetainedStore
from gateway.storage.sessions.session_journal import SessionJournal
from gateway.storage.sessions.session_store import SessionStore
from gateway.storage.sessions.will_store import WillStore

FORWARD = (
    "UPDATE session SET left_at = left_at + ? WHERE left_at IS NOT NULL",
    "UPDATE will SET due = due + ? WHERE due IS NOT NULL",
    "UPDATE delivery SET expires = expires + ? WHERE expires IS NOT NULL",
    "UPDATE message SET time = time + ? WHERE message_expiry IS NOT NULL",
    "UPDATE retained SET time = time + ? WHERE message_expiry IS NOT NULL",
)
"""What expires by the wall clock after a restart; what never does keeps its time."""


class BrokerStore:
    """Fulfils `broker.store.Store`.

    `gather` belongs into the writer's `before_batch`, `committed` into its `on_committed`.
    """

    __slots__ = (
        "_committed",
        "_forward",
        "_forward_batch",
        "_retained",
        "_sessions",
        "_wills",
        "pending",
    )

    keeps = True

    def __init__(
        self,
        gathering: Gathering,
        sessions: SessionStore,
        retained: RetainedStore,
        wills: WillStore,
    ) -> None:
        self.pending = gathering
        self._sessions = sessions
        self._retained = retained
        self._wills = wills
        self._forward = 0  # milliseconds that times on disk lack
        self._forward_batch = 0  # the last that added some
        self._committed = 0

    @property
    def deferred_commit(self) -> int:
        """The batch that makes the last deferred write; 0 while answers wait for none."""
        return self.pending.deferred_commit if self.pending.writer.durable else 0

    @property
    def full(self) -> bool:
        """True while nothing more can be promised to be kept."""
        return self.pending.writer.full

    @property
    def elided_rows(self) -> int:
        """How many rows were never written because everyone had acknowledged before."""
        return self.pending.writer.elided_rows

    @property
    def on_left_over(self) -> LeftOver:
        """What is called with spans that an ended session left on disk."""
        return self._sessions.pager.on_left_over

    @on_left_over.setter
    def on_left_over(self, call: LeftOver) -> None:
        self._sessions.pager.on_left_over = call

    def sweep(self) -> None:
        """Delete what has expired on disk, but not while times there are wrong."""
        if not self._forward and self._committed >= self._forward_batch:
            self._sessions.pager.sweep()

    def open(self, client_id: str, within: float) -> SessionJournal:
        """Return the journal of a new persistent session, whose changes may wait `within` s."""
        return self._sessions.open(client_id, within)

    def keep_retained(self, publication: Publication) -> None:
        """Keep the message in place of its topic's last one; an empty one deletes that."""
        self._retained.keep(publication)

    def forget_retained(self, topics: Iterable[str]) -> None:
        """Forget retained messages that have expired."""
        self._retained.forget(topics)

    def keep_will(self, client_id: str, username: str | None, will: Will) -> None:
        """Keep the client's will in place of its last one."""
        self._wills.keep(client_id, username, will)

    def postpone_will(self, client_id: str, due: int) -> None:
        """Note when the will is to be published: wall time, milliseconds since 1970."""
        self._wills.postpone(client_id, due)

    def drop_will(self, client_id: str) -> None:
        """Forget the client's will, if it has one."""
        self._wills.drop(client_id)

    def clock_set_forward(self, milliseconds: int) -> None:
        """Add so many milliseconds to all times that something expires from."""
        self._forward += milliseconds
        self.pending.put_off()

    def committed(self, batch: int) -> None:
        """Note that a batch is on disk."""
        self._committed = batch
        self.pending.committed(batch)
        self._sessions.committed(batch)

    def gather(self) -> None:
        """Give the writer the rows of all changes; it is about to close a batch."""
        if self._forward:
            for statement in FORWARD:
                self.pending.writer.add(statement, (self._forward,))
            self._forward = 0
            self._forward_batch = self.pending.writer.batch
        self._sessions.gather()
        self._retained.gather()
        self._wills.gather()

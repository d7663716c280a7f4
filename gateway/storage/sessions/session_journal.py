"""The journal of one persistent session: its changes since it was last written."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from gateway.access.listeners import UNKNOWN, Origin
from gateway.session.journal import OnPage, PagedQueue
from gateway.session.restored import StoredSubscription
from gateway.session.span import Span
from gateway.storage.sessions.delivery_row import DeliveryRow

if TYPE_CHECKING:
    from gateway.storage.sessions.session_store import SessionStore


class Changes:
    """Unwritten changes of a session, without its own row; delivery rows by their last number."""

    __slots__ = (
        "attempts",
        "begun",
        "deferred",
        "enqueued",
        "gone",
        "gone_messages",
        "incoming",
        "progress",
        "subscriptions",
    )

    def __init__(self) -> None:
        self.enqueued: dict[int, DeliveryRow] = {}  # to be written with the next batch
        self.deferred: dict[int, DeliveryRow] = {}  # to be written with the one after that
        self.begun: dict[int, DeliveryRow] = {}  # written, and partly finished since
        self.progress: dict[int, DeliveryRow] = {}  # written, and sent or released since
        self.gone: list[tuple[int, int]] = []  # first and last numbers of rows to be deleted
        self.gone_messages = 0  # the messages of these
        self.attempts: dict[int, int] = {}  # by sequence number; 0: to be deleted
        self.incoming: dict[int, bool] = {}  # True: to be stored, False: to be deleted
        self.subscriptions: dict[str, StoredSubscription | None] = {}  # None: to be deleted

    def deferred_before(self, messages: set[int]) -> set[int]:
        """Return the rows of deferred messages that precede one that is written now.

        A crash must not leave only the later one: the earlier one, which its publisher sends again,
        would follow it [MQTT-4.6.0-6]. Order is within one QoS; only writes of QoS 1 are deferred.
        """
        if not self.deferred:
            return set()
        written = [last for last, row in self.enqueued.items() if row.qos == 1]
        written += [last for last, row in self.deferred.items() if row.publication.row in messages]
        latest = max(written, default=0)
        return {row.publication.row for last, row in self.deferred.items() if last < latest}

    def count(self, batch: int) -> int:
        """Return by how many the messages on disk rise or fall with this batch."""
        more = -self.gone_messages
        for row in self.begun.values():
            more += row.remaining - row.written
            row.written = row.remaining
        for row in self.enqueued.values():
            more += row.remaining
            row.written = row.remaining
            row.batch = batch
            row.barrier = None  # the publisher waits for the batch from now on
        return more


class SessionJournal:
    """Implements `session.journal.Journal` with rows.

    The session's own row has the `number`; the store writes its state at that time. Each message
    has a sequence number in its session, from 1 and rising. Its commit may be delayed as its
    publication allows, that of everything else by `commit_within` seconds.
    """

    __slots__ = (
        "_changes",
        "_commit_within",
        "_last_sequence",
        "_store",
        "attempts",
        "client_id",
        "deliveries",
        "disconnected_at",
        "expiry_interval",
        "home",
        "number",
        "open",
        "queue",
        "username",
    )

    def __init__(
        self,
        store: "SessionStore",
        number: int,
        client_id: str,
        last_sequence: int = 0,
        commit_within: float = 0.0,
    ) -> None:
        self.number = number
        self.client_id = client_id
        self.expiry_interval = 0
        self.username: str | None = None
        self.home = UNKNOWN
        self.disconnected_at: int | None = None
        self.deliveries = 0  # the session's undelivered messages on disk
        self.attempts: dict[int, int] = {}  # on disk, by sequence number
        self.open = True
        self.queue: PagedQueue | None = None
        self._store = store
        self._commit_within = commit_within
        self._changes: Changes | None = None
        self._last_sequence = last_sequence

    @property
    def changes(self) -> Changes | None:
        """Unwritten changes; None without any."""
        return self._changes

    def remove_changes(self, messages: set[int]) -> Changes:
        """Return the changes to be written now, and begin new ones.

        Deferred writes are for the batch after this one. Those of `messages` are written now, for
        other sessions or for their order: a publication is acknowledged as a whole.
        """
        changes, self._changes = self._changes or Changes(), None
        deferred, changes.deferred = changes.deferred, {}
        for last, row in deferred.items():
            now = row.publication.row in messages
            (changes.enqueued if now else self._begun().enqueued)[last] = row
        return changes

    def store(self, expiry_interval: int, username: str | None, home: Origin = UNKNOWN) -> None:
        """Write the session's row, unless it is unchanged."""
        known = (self.expiry_interval, self.username, self.home, self.disconnected_at)
        if known != (expiry_interval, username, home, None):
            self.expiry_interval, self.disconnected_at = expiry_interval, None
            self.username, self.home = username, home
            self._store.row_changed(self)
            self._store.pending.changed(self._commit_within)

    def disconnect(self, wall: int) -> None:
        """Write since when the session has no connection."""
        self.disconnected_at = wall
        self._store.row_changed(self)
        self._store.pending.put_off()
        changes = self._changes
        if changes is None:
            return
        # the receiver is gone: nobody can acknowledge them first
        changes.enqueued |= changes.deferred
        changes.deferred = {}
        if changes.enqueued:
            self._store.pending.commit_number()

    def note_incoming(self, packet_ids: Sequence[int], *, released: bool) -> None:
        """Write the identifiers, or delete them."""
        self._begun().incoming.update(dict.fromkeys(packet_ids, not released))
        self._store.pending.changed(self._commit_within)

    def subscribe(self, topic_filter: str, subscription: StoredSubscription | None) -> None:
        """Write the subscription, or delete it."""
        self._begun().subscriptions[topic_filter] = subscription
        self._store.pending.changed(self._commit_within)

    def _begun(self) -> Changes:
        if self._changes is None:
            self._changes = Changes()
            self._store.changed(self)
        return self._changes

    def enqueue(self, span: Span, deferred: bool) -> None:
        """Give the messages their sequence numbers and write them, or defer that."""
        commit_within, barrier = span.publication.commit_within, span.publication.barrier
        if commit_within is None:
            return  # the class `memory`: nothing was promised to the publisher
        row = self._row_of(span, self._last_sequence + 1)
        self._last_sequence = row.last
        changes, pending = self._begun(), self._store.pending
        if deferred and barrier is not None and pending.writer.commit_delay:
            # Not written unless the receiver is late. The publisher's answer waits for the barrier,
            # or for the commit if that comes first: it is never sent while only memory has the
            # message.
            changes.deferred[row.last] = row
            row.barrier = barrier
            barrier.add()
            self._store.deferred_writes.add(row)
        else:
            changes.enqueued[row.last] = row
            pending.changed(commit_within)

    def _row_of(self, span: Span, base: int) -> DeliveryRow:
        """Return a new row for all messages of a span, whose publication has no others then."""
        publication = span.publication
        if span.count < publication.packets.count:
            # A row covers all messages of its publication: its bits and sequence numbers count from
            # the first. So a part becomes a publication of its own.
            publication = publication.part(span.first, span.count)
            span.first = 0
        span.publication = self._store.messages.hold(publication)
        span.row = row = DeliveryRow(base, span)
        span.disk_bytes = row.disk_bytes
        return row

    def done(self, span: Span, first: int, count: int) -> None:
        """Delete messages; unwritten ones are never written."""
        row = span.row
        if row is None or not self.open:
            return
        assert isinstance(row, DeliveryRow)  # noqa: S101 - only such rows are enqueued
        if not row.remaining:
            return  # a newer message has superseded it
        if self.attempts:
            for sequence in range(row.base + first, row.base + first + count):
                self.forget_attempts(sequence)
        row.remove(first, count)
        self._note_done(row)

    def _note_done(self, row: DeliveryRow) -> None:
        """Note which parts of a row must still be written or deleted later."""
        changes, store, last = self._begun(), self._store, row.last
        # Losing a deletion in a crash only repeats the message, with DUP: it may wait.
        if row.batch:
            store.pending.put_off()
        if row.remaining:
            if row.batch:
                changes.begun[last] = row
            return
        elided = store.messages.release(row.publication)
        if row.batch:
            changes.begun.pop(last, None)  # an UPDATE before its DELETE would write a page in vain
            changes.progress.pop(last, None)
            # The primary key ends with the sequence number, so a whole range is one statement. A
            # row that was split has others within its range, which stay.
            changes.gone.append((row.base if row.whole else last, last))
            changes.gone_messages += row.written
        else:
            if changes.enqueued.pop(last, None) is None:
                changes.deferred.pop(last, None)
            elided += 1
        if elided:
            store.pending.writer.elided_rows += elided
        if row.barrier is not None:  # all receivers of this row have acknowledged
            store.deferred_writes.discard(row)
            row.settle()

    def sent(self, span: Span) -> int:
        """Write the packet identifiers, of QoS 2 now and of QoS 1 later."""
        self._identify(span)
        return self.resent(span) if span.qos == 2 else 0

    def _identify(self, span: Span) -> None:
        row = span.row
        if row is None:
            return
        assert isinstance(row, DeliveryRow)  # noqa: S101 - as in `done`
        # that of its last message
        packet_id = span.packet_id - span.first + row.publication.count - 1
        if row.packet_id == packet_id:
            return
        if span.first + span.count < row.publication.count:
            row = self._cut(span, row)
            packet_id = span.packet_id + span.count - 1
        row.packet_id = packet_id
        if row.batch:
            self._begun().progress[row.last] = row
        elif self._begun().deferred.pop(row.last, None) is not None:
            # The client was disconnected while the message was in flight. It may acknowledge this
            # identifier after it reconnects, so the row is needed with it.
            self._begun().enqueued[row.last] = row
        self._store.pending.put_off()

    def _cut(self, span: Span, row: DeliveryRow) -> DeliveryRow:
        """Give a span its own row if later messages were sent separately, or not yet.

        A row has the packet identifiers of messages that were sent together.
        """
        first, count = span.first, span.count
        gone = row.gone >> first & ((1 << count) - 1)
        own = self._row_of(span, row.base + first)
        own.gone, own.remaining = gone, count - gone.bit_count()
        row.whole = False
        self._begun().enqueued[own.last] = own
        if row.barrier is not None:  # it waits for both rows now
            own.barrier = row.barrier
            own.barrier.add()
        row.remove(first, count)
        row.remaining += gone.bit_count()  # they were subtracted twice
        self._note_done(row)
        return own

    def attempted(self, span: Span, number: int, attempts: int) -> None:
        """Write how often a message was dispatched, later."""
        row = span.row
        if row is not None and self.open:
            assert isinstance(row, DeliveryRow)  # noqa: S101 - as in `done`
            if not row.remaining:
                return
            sequence = row.base + number
            self.attempts[sequence] = self._begun().attempts[sequence] = attempts
            self._store.pending.put_off()

    def forget_attempts(self, sequence: int) -> None:
        """Delete how often a message was dispatched, if that was written."""
        if self.attempts.pop(sequence, 0):
            self._begun().attempts[sequence] = 0
            self._store.pending.put_off()

    def released(self, span: Span) -> int:
        """Write that PUBREC has arrived."""
        row = span.row
        if row is not None:
            assert isinstance(row, DeliveryRow)  # noqa: S101 - as in `done`
            row.released = True
            if row.batch:
                self._begun().progress[row.last] = row
            self._store.pending.put_off()
        return self.resent(span)

    def resent(self, span: Span) -> int:
        """Return the batch of the last change, which is due now."""
        return 0 if span.row is None else self._store.pending.commit_number()

    def number_from(self, base: int) -> None:
        """Begin the sequence numbers above this one, unless they are there already."""
        self._last_sequence = max(self._last_sequence, base)

    def serve(self, queue: PagedQueue) -> None:
        """Report to this queue what is on disk."""
        self.queue = queue

    def load(self, after: int, up_to: int, on_page: OnPage) -> None:
        """Read what the queue has only on disk."""
        self._store.pager.load(self, after, up_to, on_page)

    def cut(self, size: int, dropped: Callable[[int], None], *, newest: bool) -> None:
        """Delete a part of what the queue has only on disk."""
        self._store.pager.cut(self, size, dropped, newest=newest)

    def forget(self, last: int, message: int, size: int, *, unshared: bool, count: int) -> None:
        """Delete a row that is only on disk, and its messages."""
        changes = self._begun()
        changes.gone.append((last, last))
        changes.gone_messages += count
        self._store.messages.forget(message, size, unshared=unshared)

    def close(self, undelivered: Sequence[Span]) -> None:
        """Delete everything of the session; rows that are only on disk are deleted in steps."""
        for row in {span.row: None for span in undelivered}:  # each once: spans share rows
            if isinstance(row, DeliveryRow):
                row.remaining = 0
                self._note_done(row)
        changes = self._changes or Changes()
        written = changes.gone_messages + sum(row.written for row in changes.begun.values())
        self._changes = None
        self.open = False
        self._store.end(self)
        if written < self.deliveries:
            # Not all rows on disk are known in memory: the pager reads them, so that shared
            # subscriptions get their messages and each message is deleted with its last delivery.
            left = self._begun()
            left.gone, left.gone_messages = changes.gone, changes.gone_messages
            self._store.pager.end(self)
        else:
            self._store.end_deliveries(self)

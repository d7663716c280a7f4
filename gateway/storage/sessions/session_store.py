"""Persistent sessions and their deliveries, written when a batch is closed."""

from collections.abc import Sequence

from gateway.session.restored import StoredSubscription
from gateway.storage.engine.connection import Row
from gateway.storage.engine.many_rows import joined
from gateway.storage.engine.pending_batch import Add, PendingBatch
from gateway.storage.sessions import session_rows
from gateway.storage.sessions.deferred_writes import DeferredWrites
from gateway.storage.sessions.delivery_row import DeliveryRow
from gateway.storage.sessions.message_store import MessageStore
from gateway.storage.sessions.pager import Pager
from gateway.storage.sessions.session_journal import Changes, SessionJournal


class SessionStore:
    """Makes the journals of sessions, and writes their changes.

    Changes stay in memory until the writer closes a batch, deferred writes until it closes the
    next: a message that every receiver has acknowledged by then is never written. Memory is bounded
    by what the sessions themselves hold (their queues, windows and subscriptions), and by pending
    deletions. `deliveries` is how many are on disk at the start.
    """

    def __init__(
        self,
        pending: PendingBatch,
        messages: MessageStore,
        pager: Pager,
        *,
        last_session: int = 0,
        deliveries: int = 0,
    ) -> None:
        self.pending = pending
        self.deferred_writes = DeferredWrites(pending)
        self.messages = messages
        self.pager = pager
        self._last_session = last_session
        self._deliveries = deliveries
        self._changed: dict[SessionJournal, None] = {}
        self._rows_changed: dict[SessionJournal, None] = {}
        self._ended: list[SessionJournal] = []
        self._ended_with_deliveries: list[SessionJournal] = []
        self._uncommitted: dict[SessionJournal, None] = {}

    def open(self, client_id: str, commit_within: float) -> SessionJournal:
        """Return the journal of a new session, which is written once its `store` was called."""
        self._last_session += 1
        journal = SessionJournal(self, self._last_session, client_id, commit_within=commit_within)
        self.pager.know(journal)
        return journal

    def reopen(
        self, number: int, client_id: str, last_sequence: int, deliveries: int
    ) -> SessionJournal:
        """Return the journal of a restored session."""
        journal = SessionJournal(self, number, client_id, last_sequence)
        journal.deliveries = deliveries
        self.pager.know(journal)
        return journal

    def bury(self, number: int, deliveries: int) -> None:
        """Delete the rest of a session that ended in an earlier run."""
        journal = SessionJournal(self, number, "")
        journal.deliveries = deliveries
        journal.open = False
        self.pager.end(journal)

    def changed(self, journal: SessionJournal) -> None:
        """Note that a session has changes."""
        self._changed[journal] = None

    def row_changed(self, journal: SessionJournal) -> None:
        """Note that the row of a session must be written: most connections change nothing else."""
        self._rows_changed[journal] = None

    def end(self, journal: SessionJournal) -> None:
        """Note that a session has ended."""
        self._changed.pop(journal, None)
        self._rows_changed.pop(journal, None)
        self._uncommitted.pop(journal, None)
        self.pager.forget(journal)
        self._ended.append(journal)
        self.pending.changed()

    def end_deliveries(self, journal: SessionJournal) -> None:
        """Note that none of its deliveries is needed any more."""
        self._ended_with_deliveries.append(journal)

    def committed(self, batch: int) -> None:
        """Let queues forget what is on disk now."""
        for journal in list(self._uncommitted):
            if journal.queue is None or journal.queue.forget_written(batch):
                del self._uncommitted[journal]
        self.pager.committed(batch)

    def add_rows(self) -> None:
        """Give the writer the rows of all changes; it is about to close a batch."""
        # The order matters within the transaction. An ended session is deleted before one with its
        # client identifier is written; messages precede the deliveries that refer to them;
        # deletions come last, when it is known whether any row remains.
        add = self.pending.writer.add
        if self._ended:
            self._delete_ended(add)
        if self.deferred_writes.rows:
            self.deferred_writes.clear()
        if self._rows_changed:
            self._write_sessions()
        journals, self._changed = self._changed, {}
        messages = _to_write([each.changes for each in journals if each.changes is not None])
        changed = [(journal, journal.remove_changes(messages)) for journal in journals]
        add_rows = self.pending.writer.add_rows
        emptied = self._count(changed)
        self.messages.add_insertions(add, add_rows, messages)
        plain: list[Row] = []
        for journal, changes in changed:
            if changes.subscriptions:
                _write_subscriptions(add, journal, changes)
            if changes.incoming:
                _write_incoming(add, journal, changes)
            if changes.attempts:
                _write_attempts(add, journal, changes)
            # the tables are emptied at the end: an update before that would be in vain
            if not emptied and (changes.begun or changes.progress):
                _write_remaining(add, journal, changes)
            if changes.enqueued:
                _write_deliveries(add, plain, journal, changes)
                self._uncommitted[journal] = None
        add_rows(session_rows.INSERT_PLAIN_DELIVERY, plain, 0)
        self._delete_done(changed, everything=emptied)
        self.messages.add_deletions(add, everything=emptied)

    def _write_sessions(self) -> None:
        """Write the rows of sessions, many at a time."""
        rows: list[tuple[object, ...]] = []
        size = 0
        for each in self._rows_changed:
            client_id, username, home = each.client_id, each.username, each.home
            size += len(client_id) + len(username or "") + len(home.listener or "")
            row = (each.number, client_id, each.expiry_interval, username, each.disconnected_at)
            rows.append((*row, home.listener, home.local, home.proven))
        self._rows_changed = {}
        self.pending.writer.add_rows(session_rows.SESSION, rows, size)

    def _delete_ended(self, add: Add) -> None:
        for journal in self._ended:
            for statement in session_rows.END:
                add(statement, (journal.number,))
        self._ended = []

    def _count(self, changed: list[tuple[SessionJournal, Changes]]) -> bool:
        """Count added and removed deliveries; return True if none is left."""
        before, batch = self._deliveries, self.pending.writer.batch
        for journal in self._ended_with_deliveries:
            self._deliveries -= journal.deliveries
        for journal, changes in changed:
            more = changes.count(batch)
            journal.deliveries += more
            self._deliveries += more
        return before > 0 and not self._deliveries

    def _delete_done(
        self, changed: list[tuple[SessionJournal, Changes]], *, everything: bool
    ) -> None:
        """Delete what was acknowledged, `everything` if nothing else is stored."""
        writer = self.pending.writer
        ended, self._ended_with_deliveries = self._ended_with_deliveries, []
        if everything:
            writer.add(session_rows.DONE_ALL, ())  # much cheaper than row by row
            return
        for journal in ended:
            writer.add(session_rows.DELETE_DELIVERIES, (journal.number,))
        done: list[Row] = []
        for journal, changes in changed:
            if changes.gone:
                done += [(journal.number, first, last) for first, last in joined(changes.gone)]
        if done:
            writer.add_rows(session_rows.DONE, done, 0)


def _to_write(begun: Sequence[Changes]) -> set[int]:
    """Return the rows of the messages to write: due ones, and deferred ones that precede them.

    A publication is written for all its sessions at once, and may follow a deferred one in each.
    """
    messages = {row.publication.row for changes in begun for row in changes.enqueued.values()}
    found = len(messages)
    # Repeat until nothing more is found: a message that is written for one session is written for
    # all, and in another it may follow deferred ones, which then are written for a third.
    while found:
        before = len(messages)
        for changes in begun:
            messages |= changes.deferred_before(messages)
        found = len(messages) - before
    return messages


def _write_subscriptions(add: Add, journal: SessionJournal, changes: Changes) -> None:
    for topic_filter, subscription in changes.subscriptions.items():
        if subscription is None:
            add(session_rows.UNSUBSCRIBE, (journal.number, topic_filter))
        else:
            add(session_rows.SUBSCRIBE, _subscription_row(journal, subscription))


def _subscription_row(journal: SessionJournal, stored: StoredSubscription) -> tuple[object, ...]:
    return (
        journal.number,
        stored.topic_filter,
        stored.qos,
        stored.no_local,
        stored.retain_as_published,
        stored.identifier,
        stored.where,
        stored.identity,
        stored.awaits_retained,
        _policy_text(stored),
    )


def _policy_text(stored: StoredSubscription) -> str | None:
    if stored.every is None:
        return stored.deliver
    return f"{stored.deliver or ''}{session_rows.EVERY}{stored.every}"


def _write_incoming(add: Add, journal: SessionJournal, changes: Changes) -> None:
    for packet_id, stored in changes.incoming.items():
        statement = session_rows.INSERT_INCOMING if stored else session_rows.FORGET_INCOMING
        add(statement, (journal.number, packet_id))


def _write_attempts(add: Add, journal: SessionJournal, changes: Changes) -> None:
    for sequence, attempts in changes.attempts.items():
        if attempts:
            add(session_rows.ATTEMPTED, (journal.number, sequence, attempts))
        else:
            add(session_rows.FORGET_ATTEMPTS, (journal.number, sequence))


def _write_remaining(add: Add, journal: SessionJournal, changes: Changes) -> None:
    """Write the rest of rows that earlier batches have written, and their state."""
    number = journal.number
    for row in changes.begun.values():
        add(
            session_rows.UPDATE_REMAINING,
            (row.remaining, row.remaining_bytes(), row.gone_bytes(), number, row.last),
        )
    for row in changes.progress.values():
        add(session_rows.PROGRESS, (row.packet_id, row.released, number, row.last))


def _write_deliveries(
    add: Add, plain: list[Row], journal: SessionJournal, changes: Changes
) -> None:
    """Write a session's new rows, or append them to the `plain` ones of all sessions."""
    number = journal.number
    for last, row in changes.enqueued.items():
        publication = row.publication
        if (
            row.packet_id
            or row.released
            or row.subscription_identifiers
            or row.topic_filter
            or publication.packets.count > 1
            or publication.properties.expiry is not None
        ):
            add(session_rows.INSERT_DELIVERY, _delivery_row(journal, row))
        else:
            # integers: sqlite3 searches an adapter for each bool
            retain, unshared = int(row.retain), int(not publication.shared)
            plain.append((number, last, publication.row, row.qos, retain, row.disk_bytes, unshared))


def _delivery_row(journal: SessionJournal, row: DeliveryRow) -> tuple[object, ...]:
    publication = row.publication
    expiry = publication.properties.expiry
    return (
        journal.number,
        row.last,
        publication.row,
        row.qos,
        row.retain,
        row.packet_id,
        row.released,
        session_rows.identifiers_to_text(row.subscription_identifiers),
        row.topic_filter or None,
        row.remaining_bytes(),
        not publication.shared,
        None if expiry is None else (publication.received_at or 0) + 1000 * expiry,
        row.remaining,
        row.gone_bytes(),
    )

"""The journal of one persistent session: what has changed since it was last written."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from gateway.session.journal import PagedQueue, Take
from gateway.session.span import Span
from gateway.storage.sessions.delivery_row import DeliveryRow
from gateway.storage.sessions.session_changes import Changes
from gateway.storage.sessions.session_record import SessionRecord

if TYPE_CHECKING:
    from gateway.storage.sessions.session_store import SessionStore


class SessionJournal(SessionRecord):
    """Fulfils `session.journal.Journal` with rows.

    A message has a sequence number of its own in its session, from 1 and rising, while it is kept.
    Its commit may be put off as its publication allows.
    """

    __slots__ = ("_last_sequence", "attempts", "deliveries", "open", "queue")

    def __init__(
        self,
        store: "SessionStore",
        number: int,
        client_id: str,
        last_sequence: int = 0,
        within: float = 0.0,
    ) -> None:
        super().__init__(store, number, client_id, within)
        self.deliveries = 0  # messages that the session is owed on disk
        self.attempts: dict[int, int] = {}  # on disk, by sequence number
        self.open = True
        self.queue: PagedQueue | None = None
        self._last_sequence = last_sequence

    def enqueue(self, span: Span, deferred: bool) -> None:
        """Give the messages their sequence numbers and write them, or defer that."""
        within, barrier = span.publication.commit_within, span.publication.barrier
        if within is None:
            return  # the class `memory`: the publisher was promised nothing
        row = self._row_of(span, self._last_sequence + 1)
        self._last_sequence = row.last
        changes, pending = self._begun(), self._store.pending
        if deferred and barrier is not None and pending.writer.commit_delay:
            # Not written unless the receiver is late. The publisher's answer waits for the barrier,
            # or for the commit if that comes first: it is never sent on a promise in memory alone.
            changes.deferred[row.last] = row
            row.barrier = barrier
            barrier.add()
            self._store.deferred_writes.add(row)
        else:
            changes.enqueued[row.last] = row
            pending.changed(within)

    def _row_of(self, span: Span, base: int) -> DeliveryRow:
        """Return a new row for all messages of a span, whose publication has no others then."""
        publication = span.publication
        if span.count < publication.packets.count:
            # A row stands for all messages of its publication: its bits and its sequence numbers
            # count from the first. A part of one becomes a publication of its own.
            publication = publication.part(span.first, span.count)
            span.first = 0
        span.publication = self._store.messages.hold(publication)
        span.row = row = DeliveryRow(base, span)
        span.kept = row.kept
        return row

    def done(self, span: Span, first: int, count: int) -> None:
        """Delete messages; what is not written yet never is."""
        row = span.row
        if row is None or not self.open:
            return
        assert isinstance(row, DeliveryRow)  # noqa: S101 - whoever enqueues a span gives it no other
        if self.attempts:
            for sequence in range(row.base + first, row.base + first + count):
                self.forget_attempts(sequence)
        row.take(first, count)
        self._note_done(row)

    def _note_done(self, row: DeliveryRow) -> None:
        """Note what of a row is still to be written, or deleted, at some time."""
        changes, store, last = self._begun(), self._store, row.last
        # Losing a deletion in a crash only has the message come again, with DUP: it may wait.
        if row.batch:
            store.pending.put_off()
        if row.left:
            if row.batch:
                changes.begun[last] = row
            return
        elided = store.messages.release(row.publication)
        if row.batch:
            changes.begun.pop(last, None)  # an UPDATE before its DELETE would be a page for nothing
            changes.progress.pop(last, None)
            # The primary key ends with the sequence number, so a whole range is one statement. A
            # row that was cut has others within its range, which stay.
            changes.gone.append((row.base if row.whole else last, last))
            changes.gone_messages += row.written
        else:
            if changes.enqueued.pop(last, None) is None:
                changes.deferred.pop(last, None)
            elided += 1
        if elided:
            store.pending.writer.elided_rows += elided
        if row.barrier is not None:  # everyone this row was for has acknowledged
            store.deferred_writes.discard(row)
            row.settle()

    def identify(self, span: Span) -> None:
        """Write the packet identifiers, at some time."""
        row = span.row
        if row is None:
            return
        assert isinstance(row, DeliveryRow)  # noqa: S101 - as in `done`
        packet_id = span.packet_id - span.first + row.publication.count - 1  # that of its last
        if row.packet_id == packet_id:
            return
        if span.first + span.count < row.publication.count:
            row = self._cut(span, row)
            packet_id = span.packet_id + span.count - 1
        row.packet_id = packet_id
        if row.batch:
            self._begun().progress[row.last] = row
        elif self._begun().deferred.pop(row.last, None) is not None:
            # The client has left while the message was on its way. It may acknowledge it by this
            # identifier when it is back, so that the row is needed, and with it.
            self._begun().enqueued[row.last] = row
        self._store.pending.put_off()

    def _cut(self, span: Span, row: DeliveryRow) -> DeliveryRow:
        """Give a span a row of its own, where those behind it were sent by themselves, or not yet.

        One row has the packet identifiers of messages that were sent together.
        """
        first, count = span.first, span.count
        gone = row.gone >> first & ((1 << count) - 1)
        own = self._row_of(span, row.base + first)
        own.gone, own.left = gone, count - gone.bit_count()
        row.whole = False
        self._begun().enqueued[own.last] = own
        if row.barrier is not None:  # which waits for both rows now
            own.barrier = row.barrier
            own.barrier.add()
        row.take(first, count)
        row.left += gone.bit_count()  # which were counted before
        self._note_done(row)
        return own

    def attempted(self, span: Span, number: int, attempts: int) -> None:
        """Write how often a message was given out, at some time."""
        row = span.row
        if row is not None and self.open:
            sequence = row.base + number
            self.attempts[sequence] = self._begun().attempts[sequence] = attempts
            self._store.pending.put_off()

    def forget_attempts(self, sequence: int) -> None:
        """Delete how often a message was given out, if that was written."""
        if self.attempts.pop(sequence, 0):
            self._begun().attempts[sequence] = 0
            self._store.pending.put_off()

    def sent(self, span: Span) -> int:
        """Write the packet identifier now."""
        self.identify(span)
        return self.resent(span)

    def released(self, span: Span) -> int:
        """Write that PUBREC has come."""
        row = span.row
        if row is not None:
            assert isinstance(row, DeliveryRow)  # noqa: S101 - as in `done`
            row.released = True
            if row.batch:
                self._begun().progress[row.last] = row
            self._store.pending.put_off()
        return self.resent(span)

    def resent(self, span: Span) -> int:
        """Return the batch of what was gathered last, due now."""
        return 0 if span.row is None else self._store.pending.commit_number()

    def serve(self, queue: PagedQueue) -> None:
        """Tell this queue what is on disk."""
        self.queue = queue

    def load(self, after: int, up_to: int, take: Take) -> None:
        """Read what the queue has on disk alone."""
        self._store.pager.load(self, after, up_to, take)

    def cut(self, size: int, dropped: Callable[[int], None], *, newest: bool) -> None:
        """Forget a part of what the queue has on disk alone."""
        self._store.pager.cut(self, size, dropped, newest=newest)

    def forget(self, last: int, message: int, size: int, *, alone: bool, count: int) -> None:
        """Delete a row of so many messages that is on disk alone, and their own."""
        changes = self._begun()
        changes.gone.append((last, last))
        changes.gone_messages += count
        self._store.messages.forget(message, size, alone=alone)

    def close(self, undelivered: Sequence[Span]) -> None:
        """Delete everything of the session; what is on disk alone goes bit by bit."""
        for row in {span.row: None for span in undelivered}:  # each once: spans share rows
            if isinstance(row, DeliveryRow):
                row.left = 0
                self._note_done(row)
        changes = self._changes or Changes()
        written = changes.gone_messages + sum(row.written for row in changes.begun.values())
        self._changes = None
        self.open = False
        self._store.end(self)
        if written < self.deliveries:
            # More is on disk than memory knows of: the pager reads it, so that shared subscriptions
            # get what was theirs and messages are deleted with their last delivery.
            left = self._begun()
            left.gone, left.gone_messages = changes.gone, changes.gone_messages
            self._store.pager.end(self)
        else:
            self._store.end_deliveries(self)

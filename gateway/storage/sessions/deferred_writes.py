"""Writes that are skipped if receivers acknowledge in time: few are left when a batch closes."""

import math

from gateway.storage.engine.pending_batch import PendingBatch
from gateway.storage.sessions.delivery_row import DeliveryRow


class DeferredWrites:
    """The rows of deferred writes, in order of arrival.

    They are for the batch after the pending one. That one is closed for their sake only if one of
    them is older than half of the commit delay; for messages acknowledged by then no batch is
    begun. They are bounded by the windows of all sessions.
    """

    __slots__ = ("_pending", "_wake_up", "rows")

    def __init__(self, pending: PendingBatch) -> None:
        self._pending = pending
        self.rows: dict[DeliveryRow, None] = {}
        self._wake_up = pending.writer.wake_up
        self._wake_up.ring = self._write_old

    def add(self, row: DeliveryRow) -> None:
        """Hold a row whose messages arrived now."""
        if not self.rows:
            arrived = row.publication.arrived
            self._wake_up.at = arrived + self._pending.writer.commit_delay / 2
        self.rows[row] = None
        self._pending.defer()

    def discard(self, row: DeliveryRow) -> None:
        """Forget a row: all of it was acknowledged, and it is never written."""
        self.rows.pop(row, None)
        if not self.rows:
            self._wake_up.at = math.inf

    def clear(self) -> None:
        """Forget all rows: the pending batch is closed, and they are in the next."""
        self.rows.clear()
        self._wake_up.at = math.inf

    def _write_old(self) -> None:
        """Close the pending batch if a row is older than half of the commit delay."""
        writer = self._pending.writer
        half = writer.commit_delay / 2
        now, commit_within = self._wake_up.at, math.inf
        self._wake_up.at = math.inf
        for row in list(self.rows):
            due = row.publication.arrived + half
            if due > now:
                self._wake_up.at = due
                break
            commit_within = min(commit_within, row.publication.commit_within or 0.0)
            del self.rows[row]
        if commit_within < math.inf:
            writer.schedule_commit(max(commit_within - writer.commit_delay, 0.0))
            writer.hand_over()

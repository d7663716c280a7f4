"""Messages to persistent sessions, each as one row for all of its sessions."""

from gateway.mqtt.codec.publish import NO_PUBLISH_PROPERTIES
from gateway.mqtt.publication import Publication
from gateway.storage.engine.connection import Row
from gateway.storage.engine.many_rows import insert_statement, ranges_of
from gateway.storage.engine.message_columns import MESSAGE_COLUMNS, PLAIN_COLUMNS
from gateway.storage.engine.pending_batch import Add, AddRows
from gateway.storage.sessions import message_row

INSERT = insert_statement("message", ("id", *MESSAGE_COLUMNS))
INSERT_PLAIN = insert_statement("message", ("id", *PLAIN_COLUMNS))
"""The columns of most messages: to bind six more NULLs costs nearly half of the whole row."""

INSERT_BATCH = insert_statement("message", ("id", *message_row.BATCH_COLUMNS))

_DELETE = "DELETE FROM message WHERE id BETWEEN ? AND ?"
_DELETE_UNREFERENCED = (
    "DELETE FROM message WHERE id BETWEEN ? AND ?"
    " AND NOT EXISTS (SELECT 1 FROM delivery WHERE message = message.id AND alone = 0)"
)
_DELETE_ALL = "DELETE FROM message"

MAXIMUM_DEAD_BYTES = 16 * 1024 * 1024
"""Bytes of unneeded rows above which they are deleted one by one."""

ROW_OVERHEAD = 100
"""Bytes counted for each of them beside its payload."""


class MessageStore:
    """Counts the sessions of a message in memory, and writes and deletes its row.

    Once it is written, deliveries that are only on disk may refer to it as well. A row that was
    written for one session stays its own; one that is `shared` is deleted with the last delivery.

    An unneeded row stays until all rows are unneeded: SQLite empties a table without writing its
    pages, while deleting row by row writes each page once more. A start deletes the rows that an
    earlier run left. Above MAXIMUM_DEAD_BYTES rows are deleted in any case.

    `last` is the highest number of a row.
    """

    __slots__ = ("_below", "_gone", "_gone_bytes", "_last", "_new", "_perhaps_gone")

    def __init__(self, last: int = 0) -> None:
        self._last = last
        self._new: dict[int, Publication] = {}  # by number: needed, and not written yet
        self._gone: list[int] = []
        self._perhaps_gone: list[int] = []
        self._gone_bytes = 0
        self._below = 0

    def hold(self, publication: Publication) -> Publication:
        """Note one more session of a publication; return the publication for that session.

        That is a copy if the row is another session's own.
        """
        # its row is deleted with that session's delivery, without a search for others
        if publication.stored_for and not publication.shared and publication.row not in self._new:
            publication = publication.copy()
        if not publication.stored_for:
            self._last += 1
            publication.row = self._last
            publication.shared = False
            self._new[publication.row] = publication
        publication.stored_for += 1
        return publication

    def release(self, publication: Publication) -> int:
        """Note that a session counted by `hold` no longer needs a publication.

        Returns how many rows need not be written because of that: 1 or 0.
        """
        publication.stored_for -= 1
        if publication.stored_for:
            return 0
        if self._new.pop(publication.row, None) is not None:
            return 1
        size = len(publication.packets.data)
        self.forget(publication.row, size, unshared=not publication.shared)
        return 0

    def forget(self, row: int, size: int, *, unshared: bool) -> None:
        """Delete a row; one that is shared only if no delivery refers to it."""
        (self._gone if unshared else self._perhaps_gone).append(row)
        self._gone_bytes += ROW_OVERHEAD + size

    def forget_all_below(self, row: int) -> None:
        """Delete these unreferenced rows of an earlier run with the next batch."""
        self._below = row

    def add_insertions(self, add: Add, add_rows: AddRows, rows: set[int]) -> None:
        """Add the INSERTs of those of `rows` that are new."""
        plain: list[Row] = []
        size = 0
        for row in sorted(rows & self._new.keys()):
            publication = self._new.pop(row)
            # a retained message may be delivered to other sessions later
            publication.shared = publication.stored_for > 1 or publication.retain
            if publication.packets.count > 1:
                add(INSERT_BATCH, (row, *message_row.batch_to_row(publication)))
            elif publication.properties is not NO_PUBLISH_PROPERTIES:
                add(INSERT, (row, *message_row.to_row(publication)))
            else:
                size += message_row.text_size(publication)
                plain.append((row, *message_row.to_plain_row(publication)))
        add_rows(INSERT_PLAIN, plain, size)

    def add_deletions(self, add: Add, *, everything: bool) -> None:
        """Add the DELETEs of unneeded rows; `everything` if no row is needed.

        Call it after the deletions of deliveries.
        """
        if self._below:
            add(_DELETE, (0, self._below - 1))
            self._below = 0
        if not everything and self._gone_bytes < MAXIMUM_DEAD_BYTES:
            return
        gone, self._gone = self._gone, []
        perhaps, self._perhaps_gone = self._perhaps_gone, []
        self._gone_bytes = 0
        if everything:
            add(_DELETE_ALL, ())
            return
        for each in ranges_of(gone):
            add(_DELETE, each)
        # deliveries that are only on disk may still refer to these: each is looked up
        for each in ranges_of(set(perhaps)):
            add(_DELETE_UNREFERENCED, each)

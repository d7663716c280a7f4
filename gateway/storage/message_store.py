"""Messages that persistent sessions are owed, each as one row however many are owed it."""

from copy import copy

from gateway.mqtt.message import Message
from gateway.session.message_run import MessageRun
from gateway.storage import message_row
from gateway.storage.connection import Row
from gateway.storage.gathering import Add, AddRows, runs
from gateway.storage.outbox_row import insert_statement

INSERT = insert_statement("message", ("id", *message_row.COLUMNS))
INSERT_PLAIN = insert_statement("message", ("id", *message_row.PLAIN_COLUMNS))
"""What most messages need: to bind six more NULLs costs nearly half of the whole row."""

INSERT_RUN = insert_statement("message", ("id", *message_row.RUN_COLUMNS))

_DELETE = "DELETE FROM message WHERE id BETWEEN ? AND ?"
_DELETE_UNLESS_OWED = (
    "DELETE FROM message WHERE id BETWEEN ? AND ?"
    " AND NOT EXISTS (SELECT 1 FROM delivery WHERE message = message.id AND alone = 0)"
)
_DELETE_ALL = "DELETE FROM message"

MAXIMUM_DEAD_BYTES = 16 * 1024 * 1024
"""Bytes of rows that nobody is owed any more, beyond which they are deleted one by one."""

ROW_OVERHEAD = 100
"""Bytes counted for each of them beside its payload."""


class MessageStore:
    """Counts who is owed a message in memory, and writes and deletes its row.

    Once it is written, deliveries that are on disk alone may refer to it as well. A row that was
    written for one session stays its own; one that is `shared` is deleted with the last delivery.

    What nobody is owed any more is left where it is until that is true of all: SQLite empties a
    table without writing its pages, where row by row each page is written once more. A start
    deletes what an earlier run left so. Beyond MAXIMUM_DEAD_BYTES rows are deleted all the same.

    `last` is the highest number of a row.
    """

    def __init__(self, last: int = 0) -> None:
        self._last = last
        self._new: dict[int, Message | MessageRun] = {}  # by number: owed, and not written yet
        self._gone: list[int] = []
        self._perhaps_gone: list[int] = []
        self._gone_bytes = 0
        self._below = 0

    def hold(self, message: Message) -> Message:
        """Note that one session more is owed the message; return what it is owed.

        That is a copy where the row is another session's own.
        """
        if message.owed and not message.shared and message.row not in self._new:
            message = copy(message)
            message.holders = message.owed = 0
            message.pledge = None
        if not message.owed:
            self._last += 1
            message.row = self._last
            message.shared = False
            self._new[message.row] = message
        message.owed += 1
        return message

    def hold_run(self, run: MessageRun) -> None:
        """Note that one session more is owed all messages of a run that was published just now."""
        if not run.owed:
            self._last += 1
            run.row = self._last
            self._new[run.row] = run
        run.owed += 1

    def release_run(self, run: MessageRun) -> int:
        """Note that one of these sessions is owed none of them any more; return as `release`."""
        return self._release(run, len(run.data))

    def release(self, message: Message) -> int:
        """Note that one of the sessions that `hold` was called for is owed it no more.

        Returns how many rows need not be written because of that: 1 or 0.
        """
        return self._release(message, len(message.payload))

    def _release(self, held: Message | MessageRun, size: int) -> int:
        held.owed -= 1
        if held.owed:
            return 0
        if self._new.pop(held.row, None) is not None:
            return 1
        self.forget(held.row, size, alone=not held.shared)
        return 0

    def forget(self, row: int, size: int, *, alone: bool) -> None:
        """Delete a row of so many bytes, if it is not `alone` only unless it is still owed."""
        (self._gone if alone else self._perhaps_gone).append(row)
        self._gone_bytes += ROW_OVERHEAD + size

    def forget_all_below(self, row: int) -> None:
        """Delete these with the next batch: an earlier run left them, and nobody is owed them."""
        self._below = row

    def gather(self, add: Add, add_rows: AddRows, rows: set[int]) -> None:
        """Add what writes those of `rows` that are new."""
        plain: list[Row] = []
        size = 0
        for row in sorted(rows & self._new.keys()):
            message = self._new.pop(row)
            if isinstance(message, MessageRun):
                message.shared = message.owed > 1
                add(INSERT_RUN, (row, *message_row.run_to_row(message)))
                continue
            # a retained message may be owed to others later
            message.shared = message.owed > 1 or message.retain
            if not message_row.is_plain(message):
                add(INSERT, (row, *message_row.to_row(message)))
                continue
            size += message_row.text_size(message)
            plain.append((row, *message_row.to_plain_row(message)))
        add_rows(INSERT_PLAIN, plain, size)

    def gather_deletions(self, add: Add, *, everything: bool) -> None:
        """Add what deletes what is owed no more, `everything` if that is all that there is.

        Belongs behind what deletes deliveries.
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
        for run in runs(gone):
            add(_DELETE, run)
        for run in runs(list(set(perhaps))):
            add(_DELETE_UNLESS_OWED, run)

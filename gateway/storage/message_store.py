"""Messages that persistent sessions are owed, each as one row however many are owed it."""

from gateway.mqtt.message import Message
from gateway.storage import message_row
from gateway.storage.gathering import Add, runs
from gateway.storage.outbox_row import insert_statement

INSERT = insert_statement("message", ("id", *message_row.COLUMNS))
_DELETE = "DELETE FROM message WHERE id BETWEEN ? AND ?"
_DELETE_ALL = "DELETE FROM message"

MAXIMUM_DEAD_BYTES = 16 * 1024 * 1024
"""Bytes of rows that nobody is owed any more, beyond which they are deleted one by one."""

ROW_OVERHEAD = 100
"""Bytes counted for each of them beside its payload."""


class MessageStore:
    """Counts who is owed a message, and writes and deletes its row.

    What nobody is owed any more is left where it is until that is true of all: SQLite empties a
    table without writing its pages, where row by row each page is written once more. A start
    deletes what an earlier run left so. Beyond MAXIMUM_DEAD_BYTES rows are deleted all the same.

    `last` is the highest number of a row, `on_disk` how many rows there are.
    """

    def __init__(self, last: int = 0, on_disk: int = 0) -> None:
        self._last = last
        self._on_disk = on_disk
        self._new: dict[int, Message] = {}  # by number: owed, and not written yet
        self._gone: list[int] = []
        self._gone_bytes = 0

    def hold(self, message: Message) -> None:
        """Note that one session more is owed the message."""
        if not message.owed:
            self._last += 1
            message.row = self._last
            self._new[message.row] = message
        message.owed += 1

    def release(self, message: Message) -> int:
        """Note that one of the sessions that `hold` was called for is owed it no more.

        Returns how many rows need not be written because of that: 1 or 0.
        """
        message.owed -= 1
        if message.owed:
            return 0
        if self._new.pop(message.row, None) is not None:
            return 1
        self._gone.append(message.row)
        self._gone_bytes += ROW_OVERHEAD + len(message.payload)
        return 0

    def delete(self, rows: list[int]) -> None:
        """Delete these with the next batch: an earlier run left them, and nobody is owed them."""
        self._gone += rows
        self._gone_bytes += MAXIMUM_DEAD_BYTES

    def gather(self, add: Add, rows: set[int]) -> None:
        """Add what writes those of `rows` that are new, and deletes what is owed no more."""
        for row in sorted(rows & self._new.keys()):
            add(INSERT, (row, *message_row.to_row(self._new.pop(row))))
            self._on_disk += 1
        all_gone = len(self._gone) == self._on_disk
        if not self._gone or (not all_gone and self._gone_bytes < MAXIMUM_DEAD_BYTES):
            return
        gone, self._gone, self._gone_bytes = self._gone, [], 0
        self._on_disk -= len(gone)
        if all_gone:
            add(_DELETE_ALL, ())
            return
        for run in runs(gone):
            add(_DELETE, run)
